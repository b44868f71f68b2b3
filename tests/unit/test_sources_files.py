"""Walking and reading untrusted files."""

import os
from pathlib import Path

import pytest

from repertory.errors import SourceError
from repertory.sources.reading import walk
from repertory.sources.reading.files import read_text
from repertory.sources.reading.walk import Walk
from repertory.sources.source import Severity
from tests.support.builders import write
from tests.support.links import close


def is_markdown(name: str) -> bool:
    """Select the files that these tests want."""
    return name.endswith(".md")


def fill(root: Path, *places: str) -> None:
    """Make files with a little text in them."""
    for place in places:
        write(root / place)


def places(walked: Walk) -> list[str]:
    """Return the places of the files found."""
    return [file.place for file in walked.files]


def test_a_walk_is_sorted_and_skips_generated_folders(tmp_path: Path) -> None:
    """Files are sorted by path; folders such as ``node_modules`` and ``.git`` are not entered."""
    fill(tmp_path, "b.md", "a/z.md", "a.md", "note.txt", "node_modules/x.md", "a/.git/y.md")
    fill(tmp_path, ".venv/v.md", "a/__pycache__/p.md", ".hidden/h.md")
    walked = Walk(tmp_path, is_markdown)
    assert places(walked) == [".hidden/h.md", "a.md", "a/z.md", "b.md"]
    assert walked.files[1].path == str(tmp_path / "a.md")
    assert walked.problems == []


@pytest.mark.parametrize("root", ["missing", "file.md"])
def test_a_root_that_cannot_be_listed_is_an_error(tmp_path: Path, root: str) -> None:
    """A root that is missing or a file raises an error with its name."""
    fill(tmp_path, "file.md")
    with pytest.raises(SourceError, match=root):
        Walk(tmp_path / root, is_markdown)


def test_the_error_for_an_unreadable_root_advises_to_make_it_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder exists, so the message does not advise restoring it."""

    def closed(_: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(SourceError, match=r"denied\): make it readable, or remove its source"):
        Walk(tmp_path, is_markdown)


def test_links_are_followed_only_inside_the_root(tmp_path: Path) -> None:
    """A link out of the root is reported and not followed; a link to a file inside is followed."""
    root = tmp_path / "root"
    fill(root, "a.md")
    fill(tmp_path / "outside", "secret.md")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "out.md").symlink_to(tmp_path / "outside" / "secret.md")
    (root / "in.md").symlink_to(root / "a.md")
    walked = Walk(root, is_markdown)
    assert places(walked) == ["a.md", "in.md"]
    assert [Path(problem.path).name for problem in walked.problems] == ["out", "out.md"]


def test_a_link_that_cannot_be_followed_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link may lead to a folder that the user cannot access; the other files are read."""
    fill(tmp_path, "a.md", "docs/b.md")
    (tmp_path / "docs" / "x").symlink_to("/closed")
    (tmp_path / "x.md").symlink_to("/closed")
    close(monkeypatch, "/closed")
    walked = Walk(tmp_path, is_markdown)
    assert places(walked) == ["a.md", "docs/b.md"]
    assert [one.path for one in walked.problems] == [f"{tmp_path}/docs/x", f"{tmp_path}/x.md"]
    assert "cannot be followed" in walked.problems[0].message


def test_a_folder_whose_name_starts_with_the_root_s_is_outside(tmp_path: Path) -> None:
    """``/skills-private`` is not inside ``/skills``."""
    fill(tmp_path / "skills", "a.md")
    fill(tmp_path / "skills-private", "b.md")
    (tmp_path / "skills" / "link").symlink_to(tmp_path / "skills-private")
    assert places(Walk(tmp_path / "skills", is_markdown)) == ["a.md"]


def test_a_folder_is_read_once_under_its_own_name(tmp_path: Path) -> None:
    """A link to a folder that is read anyway adds no files, whichever name sorts first."""
    fill(tmp_path, "real/a.md")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    walked = Walk(tmp_path, is_markdown)
    assert places(walked) == ["real/a.md"]
    assert walked.problems == []


def test_a_link_to_a_folder_that_is_otherwise_skipped_is_followed(tmp_path: Path) -> None:
    """A skill of a package in ``node_modules`` is found at the project's link to it."""
    fill(tmp_path, "node_modules/pack/skill/a.md")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "pack").symlink_to(tmp_path / "node_modules" / "pack")
    assert places(Walk(tmp_path, is_markdown)) == ["skills/pack/skill/a.md"]


def test_a_loop_of_links_is_cut_and_reported(tmp_path: Path) -> None:
    """A link to itself or to a folder that contains it is not followed, and is a problem."""
    fill(tmp_path, "a/b/c.md")
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path / "a")
    (tmp_path / "self.md").symlink_to(tmp_path / "self.md")
    walked = Walk(tmp_path, is_markdown)
    assert places(walked) == ["a/b/c.md"]
    assert [Path(problem.path).name for problem in walked.problems] == ["up", "self.md"]


def test_a_linked_root_is_walked_under_its_own_name(tmp_path: Path) -> None:
    """Paths start with the configured root, not with the link's target."""
    fill(tmp_path / "real", "a/b.md")
    (tmp_path / "root").symlink_to(tmp_path / "real")
    assert Walk(tmp_path / "root", is_markdown).files[0].path == str(tmp_path / "root/a/b.md")


def test_depth_is_limited(tmp_path: Path) -> None:
    """Folders that are nested too deeply are not entered, and one warning reports them."""
    deep = "/".join("abcdefghij")
    fill(tmp_path, f"{deep}/ten.md", f"{deep}/k/eleven.md", f"{deep}/l/eleven.md")
    walked = Walk(tmp_path, is_markdown)
    assert places(walked) == [f"{deep}/ten.md"]
    assert [problem.path for problem in walked.problems] == [str(tmp_path / deep / "k")]
    assert walked.unlisted == []


def test_the_number_of_folders_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk stops at the limit with a problem; unlisted folders do not count as deleted."""
    monkeypatch.setattr(walk, "MAX_FOLDERS", 3)
    fill(tmp_path, *(f"{number}/a.md" for number in range(9)))
    walked = Walk(tmp_path, is_markdown)
    assert places(walked) == ["0/a.md", "1/a.md"]
    assert walked.unlisted == [""]
    assert "more than 3 folders" in walked.problems[0].message


def test_a_folder_that_cannot_be_listed_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walk continues, and the folder's items do not count as deleted."""
    fill(tmp_path, "a/a.md", "b/b.md")
    listing = os.scandir

    def scandir(path: str) -> "os._ScandirIterator[str]":
        if path.endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(os, "scandir", scandir)
    walked = Walk(tmp_path, is_markdown)
    assert places(walked) == ["b/b.md"]
    assert walked.unlisted == ["a"]
    assert walked.problems[0].severity is Severity.ERROR


def test_a_name_that_cannot_be_shown_is_left_out(tmp_path: Path) -> None:
    """Names with control characters or invalid UTF-8 are reported and skipped."""
    fill(tmp_path, "good.md", "bad\x1b[31m.md")
    with open(os.fsencode(tmp_path) + b"/\xff.md", "wb") as file:  # noqa: PTH123 - a name in bytes
        file.write(b"text")
    walked = Walk(tmp_path, is_markdown)
    assert places(walked) == ["good.md"]
    assert len(walked.problems) == 2
    assert all(problem.path.isprintable() for problem in walked.problems)


def read(path: Path, data: bytes) -> tuple[str | None, list[str]]:
    """Read bytes from a file; return the text and the problems as text."""
    path.write_bytes(data)
    text, problems = read_text(str(path), limit=1000)
    return text, [str(problem).removeprefix(str(path)) for problem in problems]


def test_the_byte_order_mark_and_line_ends_are_normalised(tmp_path: Path) -> None:
    """A byte order mark is dropped, and every line end is a newline."""
    assert read(tmp_path / "a", "\ufeffä\r\nb\rc\n".encode()) == ("ä\nb\nc\n", [])


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_a_byte_order_mark_is_read(tmp_path: Path, coding: str) -> None:
    """Xcode and PowerShell write such files; a cut last character is replaced."""
    text = "ä\n漢🎉\n" * 10_000
    (tmp_path / "a").write_bytes(f"\ufeff{text}".encode(coding))
    assert read_text(str(tmp_path / "a")) == (text, [])
    assert read(tmp_path / "b", "\ufeffab".encode(coding)[:-1]) == ("a\ufffd", [])


def test_invalid_utf8_is_replaced_with_a_warning(tmp_path: Path) -> None:
    """The warning names the byte and the line."""
    text, problems = read(tmp_path / "a", b"one\ntwo \x81\n")
    assert text == "one\ntwo \ufffd\n"
    assert problems == [
        ":2: The file is not UTF-8 (byte 8); the invalid bytes were replaced. Save it as UTF-8."
    ]


@pytest.mark.parametrize(
    ("coding", "name", "text"),
    [
        ("latin-1", "Windows-1252", "créée"),
        ("latin-1", "Windows-1252", "Größe: Ångström, ¿Cómo? Þetta ævintýrið"),
        ("cp1252", "Windows-1252", "a — “quoted” … €5"),
        ("koi8-r", "KOI8", "# Keys\nили"),
        ("koi8-u", "KOI8", "Інструкція з ротації ключів. Ця навичка допомагає писати листи."),
        ("cp1251", "Windows-1251", "Привет, мир. Это «длинный» документ — и ключи"),
        ("cp932", "Shift JIS", "設定ファイル"),
        ("cp932", "Shift JIS", "run: サーバーを起動するには、次のコマンドを実行します。"),
        ("euc_jp", "EUC-JP", "サーバーを起動するには、次のコマンドを実行します。"),
        ("cp949", "EUC-KR", "서버를 시작하려면 漢字 다음 명령을 실행하세요. 뷁"),
        ("cp949", "EUC-KR", "변경"),
        ("gb18030", "GB 18030", "中文"),
        ("gb18030", "GB 18030", "把文件发给团队"),
        ("gb18030", "GB 18030", "# 部署\n构建并发布前端应用"),
        ("gb18030", "GB 18030", "# 翻译\n使用 git clone 下载源码、编译并安装。注意镕、喆"),
    ],
)
def test_common_older_encodings_are_read_with_a_warning(
    tmp_path: Path, coding: str, name: str, text: str
) -> None:
    """The text is decoded correctly, and the warning names the encoding."""
    found, [problem] = read(tmp_path / "a", text.encode(coding))
    assert found == text
    assert f"; it was read as {name}. Save it as UTF-8." in problem


@pytest.mark.parametrize(
    "data",
    [
        "été, noël, ñ".encode() + b"\xe2\x82",
        "and a café".encode()[:-1],
        "a quoted”".encode()[:-1],
        "Πρόσεξε τον νόμο και το νερό. Οδηγίες την αλλαγή κλειδιών".encode("cp1253"),
        "אני אוהב את הים ואת השמש, כיצד לבקש חופשה".encode("cp1255"),
        "這是一個中文文檔、可以搜尋伺服器設定".encode("big5"),
        bytes(range(1, 256)),
    ],
)
def test_invalid_bytes_in_other_encodings_are_replaced(tmp_path: Path, data: bytes) -> None:
    """Damaged UTF-8 is handled in the same way: only its invalid bytes are replaced."""
    found, problems = read(tmp_path / "a", data)
    assert found
    assert "\ufffd" in found
    assert "the invalid bytes were replaced" in problems[0]


def test_control_characters_are_removed_with_a_warning(tmp_path: Path) -> None:
    """Escape sequences for terminals never reach an item."""
    text, problems = read(tmp_path / "a", b"\x1b[31mred\x07\tend\n")
    assert text == "[31mred\tend\n"
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PNG\0\1\2", "binary"),
        ("ab".encode("utf-16-le"), "binary"),
        ("\ufeffab".encode("utf-32-le"), "binary"),
        ("\ufeff".encode("utf-16-le"), "empty"),
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"x" * 1001, "more than 1,000 bytes"),
    ],
)
def test_a_file_without_text_is_an_error(tmp_path: Path, data: bytes, reason: str) -> None:
    """Binary, empty and huge files have no text, and the message says why."""
    text, problems = read(tmp_path / "a", data)
    assert text is None
    assert reason in problems[0]


def test_a_file_that_is_not_regular_is_refused_without_blocking(tmp_path: Path) -> None:
    """A FIFO, a folder, a link to nothing and a link to itself are reported at once."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nothing").symlink_to(tmp_path / "gone")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    for name in ("fifo", "folder", "nothing", "self", "missing"):
        text, [problem] = read_text(str(tmp_path / name))
        assert text is None
        assert problem.severity is Severity.ERROR
        if name == "nothing":
            assert "does not exist; correct it or remove it" in problem.message


def test_a_file_without_permission_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message contains the system's error (simulated, because tests may run as root)."""
    fill(tmp_path, "a.md")

    def refuse(*_args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    text, [problem] = read_text(str(tmp_path / "a.md"))
    assert text is None
    assert "Permission denied" in problem.message
