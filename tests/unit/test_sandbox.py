"""The sandbox: no path reads anything outside it."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from repertory.errors import UsageError
from repertory.skill_vectors.sandbox import MAX_BYTES, MAX_PATH_LENGTH, Sandbox

INSIDE = "what is inside"
OUTSIDE = "what is outside"

# Path components with a meaning on this system, on others, or in the sandbox below.
NAMES = (
    *(
        "",
        ".",
        "..",
        "...",
        "~",
        "*",
        "%2e%2e",
        "..%2f",
        "\uff0e\uff0e",
        "\u2025",
        "\u2215",
        "..;",
        ".. ",
        " ",
    ),
    *(
        "C:",
        "c:",
        "\\\\server\\share",
        "..\\..",
        "CON",
        "NUL",
        "file:",
        "con.md::$DATA",
        "\0",
        "\n",
    ),
    *("\ud800", "\x7f", "\x85", "a" * 300, "dev", "null", "zero", "proc", "self", "cwd", "etc"),
    *("passwd", "sandbox", "SANDBOX", "outside", "secret.md", "a.md", "A.MD", "a.md\0.txt", "b.md"),
    *(
        "folder",
        "Folder",
        "in",
        "out",
        "up",
        "within",
        "beyond",
        "loop",
        "around",
        "pipe",
        "socket",
    ),
)
PATHS = st.one_of(
    st.text(),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=6).map("/".join),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=6).map("\\".join),
    st.lists(st.one_of(st.sampled_from(NAMES), st.text()), max_size=4).map("/".join),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a sandbox, files outside it, and links of every kind between them.

    It is the working directory, so a relative path that is not confined would find its files.
    """
    home = tmp_path_factory.mktemp("home")
    sandbox, outside = home / "sandbox", home / "outside"
    (sandbox / "folder").mkdir(parents=True)
    outside.mkdir()
    for file in (sandbox / "a.md", sandbox / "folder" / "b.md"):
        file.write_text(INSIDE)
    for file in (home / "a.md", outside / "a.md", outside / "secret.md", home / "sandbox2.md"):
        file.write_text(OUTSIDE)
    (sandbox / "in").symlink_to("folder/b.md")
    (sandbox / "within").symlink_to(sandbox / "folder")
    (sandbox / "around").symlink_to("../sandbox/folder")
    (sandbox / "out").symlink_to("../outside/secret.md")
    (sandbox / "beyond").symlink_to(outside)
    (sandbox / "folder" / "up").symlink_to("../..")
    (sandbox / "folder" / "chained").symlink_to("../beyond/secret.md")
    (sandbox / "loop").symlink_to("loop")
    (sandbox / "terminal").symlink_to("/dev/zero")
    os.mkfifo(sandbox / "pipe")
    with contextlib.chdir(home), socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sandbox/socket")
        yield home


@pytest.fixture
def sandbox(home: Path) -> Sandbox:
    """The sandbox inside ``home``."""
    return Sandbox(home / "sandbox")


@given(path=PATHS)
@example(path="folder/up/outside/secret.md")
@example(path="folder/../../outside/secret.md")
@example(path="beyond/secret.md")
@example(path="pipe")
@settings(
    max_examples=400,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # it keeps nothing
)
def test_no_path_reads_anything_outside(sandbox: Sandbox, path: str) -> None:
    """A path is either refused with a short message or leads to a file inside the sandbox."""
    try:
        file = sandbox.read(path)
    except UsageError as error:
        result = str(error)
    else:
        result = file.text
        assert Path(file.path).resolve().is_relative_to(sandbox.root)
        assert result == INSIDE
    assert OUTSIDE not in result
    assert len(result.encode()) < 2_000


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("a.md", "a.md"),
        ("./folder//b.md", "folder/b.md"),
        ("in", "folder/b.md"),
        ("within/b.md", "folder/b.md"),
        ("around/b.md", "folder/b.md"),
    ],
)
def test_files_and_links_that_stay_inside_are_read(sandbox: Sandbox, path: str, real: str) -> None:
    """A file is identified by its resolved absolute path, whatever link led to it."""
    file = sandbox.read(path)
    assert file.text == INSIDE
    assert file.path == os.path.join(sandbox.root, real)  # noqa: PTH118 - a string
    assert sandbox.place(file.path) == real


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("//server/share/a.md", "is absolute"),
        ("C:/a.md", "is absolute"),
        ("c:a.md", "is absolute"),
        ("\\\\server\\share", "backslash"),
        ("..\\a.md", "backslash"),
        ("..", "holds '..'"),
        ("../a.md", "holds '..'"),
        ("folder/../a.md", "holds '..'"),
        ("a.md\0", "control characters"),
        ("a.md\n", "control characters"),
        ("\ud800", "control characters"),
        ("a/" * MAX_PATH_LENGTH, "more than 4,096 characters"),
        ("a" * 4_000, "cannot be read"),
        (".", "leads to no file inside"),
        ("out", "leads to no file inside"),
        ("beyond/secret.md", "leads to no file inside"),
        ("folder/up/a.md", "leads to no file inside"),
        ("folder/chained", "leads to no file inside"),
        ("terminal", "leads to no file inside"),
        ("loop", "cannot be read"),
        ("missing.md", "No such file"),
        ("a.md/b.md", "Not a directory"),
        ("folder", "not a regular file"),
        ("pipe", "not a regular file"),
        ("socket", "cannot be read"),
    ],
)
def test_a_refusal_names_the_reason(sandbox: Sandbox, path: str, fault: str) -> None:
    """The message states what is wrong and shows at most the beginning of the path."""
    with pytest.raises(UsageError, match=fault) as raised:
        sandbox.read(path)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("name", ["not\udcffunicode.md", "hidden\u2066.md"])
def test_a_link_to_a_name_that_cannot_be_shown_is_refused(tmp_path: Path, name: str) -> None:
    """The resolved path must be printable because it is stored and shown."""
    try:
        (tmp_path / name).write_text("text", "utf-8")
    except OSError:
        pytest.skip("no file can have this name here")
    (tmp_path / "link.md").symlink_to(name)
    with pytest.raises(UsageError, match="leads to no file inside the sandbox"):
        Sandbox(tmp_path).read("link.md")


@pytest.mark.parametrize("middle", [True, False], ids=["folder", "file"])
def test_a_link_created_in_the_meantime_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, middle: bool
) -> None:
    """A folder or the file is replaced by a link to the outside between check and open."""
    inside, outside = tmp_path / "sandbox" / "folder", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(INSIDE if folder == inside else OUTSIDE)
    sandbox = Sandbox(tmp_path / "sandbox")
    resolve = os.path.realpath

    def resolve_and_swap(path: str, *, strict: bool) -> str:
        real = resolve(path, strict=strict)
        swapped, target = (inside, outside) if middle else (inside / "a.md", outside / "a.md")
        swapped.rename(tmp_path / "parked")
        swapped.symlink_to(target)
        return real

    monkeypatch.setattr(os.path, "realpath", resolve_and_swap)
    with pytest.raises(UsageError, match=r"cannot be read|leads out of"):
        sandbox.read("folder/a.md")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"text\0text", "binary"),
        (b"caf\xe9", r"not UTF-8 \(byte 3\)"),
        (b"x" * (MAX_BYTES + 1), "more than 131,072 bytes"),
    ],
)
def test_only_text_of_a_bounded_size_is_accepted(
    tmp_path: Path, content: bytes, fault: str
) -> None:
    """Empty, binary, non-UTF-8 and too large files are refused."""
    (tmp_path / "a.md").write_bytes(content)
    with pytest.raises(UsageError, match=fault):
        Sandbox(tmp_path).read("a.md")


def test_a_file_of_the_maximum_size_is_read(tmp_path: Path) -> None:
    """The byte order mark counts towards the limit and is dropped from the text."""
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbf" + b"x" * (MAX_BYTES - 3))
    assert Sandbox(tmp_path).read("a.md").text == "x" * (MAX_BYTES - 3)


def test_missing_is_reported_only_for_absent_files(tmp_path: Path) -> None:
    """If the sandbox's folder is absent or a link leads outside, no file is called missing."""
    (tmp_path / "a.md").write_text(INSIDE)
    assert Sandbox(tmp_path).missing("a.md") is None
    assert Sandbox(tmp_path).missing("b.md") == str(tmp_path.resolve() / "b.md")
    assert Sandbox(tmp_path / "away").missing("a.md") is None
    (tmp_path / "link.md").symlink_to("../outside.md")
    assert Sandbox(tmp_path).missing("link.md") is None


def test_a_missing_sandbox_is_an_error_and_a_link_is_resolved(tmp_path: Path) -> None:
    """A missing sandbox is an error; a link to a folder works like the folder."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text(INSIDE)
    (tmp_path / "link").symlink_to("real")
    linked = Sandbox(tmp_path / "link")

    assert linked.read("a.md").path == str((tmp_path / "real" / "a.md").resolve())
    assert linked.place(str(tmp_path / "link" / "a.md")) == "a.md"
    assert linked.place(str(tmp_path / "link2" / "a.md")) is None
    with pytest.raises(UsageError, match="There is no folder"):
        Sandbox(tmp_path / "gone").read("a.md")
