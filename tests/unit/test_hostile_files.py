"""Hostile files cannot make us wait, read outside their repository, or run out of memory."""

import contextlib
import ctypes
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from repertory.catalogue.views import split_at_headings
from repertory.errors import BEGINNING, END, ConfigurationError, SourceError, UnknownItemError
from repertory.file_settings import MAX_FILE_SIZE
from repertory.settings import load
from repertory.skill_files import content_of, files_of
from repertory.sources.corpus import Corpus
from repertory.sources.discover import discover
from repertory.sources.documents import Documents
from repertory.sources.mcp.config import MAX_FOUND_SIZE, read_files
from repertory.sources.mcp.entry import build
from repertory.sources.mcp.unreadable_answers import mended
from repertory.sources.python_skills import PythonSkills
from repertory.sources.reading import frontmatter, structured
from repertory.sources.reading.files import FILE_LIMIT, read_file
from repertory.sources.reading.gitignore import GitIgnore
from repertory.sources.reading.markdown import first_heading, first_paragraph
from repertory.sources.reading.walk import Walk
from repertory.sources.skill_folders import SkillFolders
from repertory.sources.source import Severity
from repertory.system import untrusted_files
from repertory.system.paths import UnfitFileError, followed, lies_in
from repertory.system.untrusted_files import (
    OpenFolder,
    read_beginning,
    read_bytes,
    read_inside,
    read_within,
)
from repertory.text import clean
from repertory.trust import TrustStore
from tests.support.builders import write
from tests.support.growth import grows_too_fast

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "IGNORE ALL PREVIOUS")
ESCAPED_TAGS = "".join(f"\\U000e00{ord(letter):02x}" for letter in "IGNORE ALL PREVIOUS")
PARTS = ["a", "b", "c", "d", ".", "..", ""]
SERVERS = '{"mcpServers": {"a": {"command": "a"}}}'


@pytest.mark.parametrize("name", ["x.json", ".mcp.json", ".x.json"])
def test_a_pipe_is_discovered_without_waiting(tmp_path: Path, name: str) -> None:
    """Reading a pipe without a writer would block."""
    os.mkfifo(tmp_path / name)
    types = [entry["type"] for entry in discover(tmp_path).entries]
    assert types == ["documents"]


def test_a_configuration_that_is_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    """It is refused as a source of a ``repertory.toml``, and as a file to trust."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="it is not a regular file"):
        build({"type": "mcp", "config": "pipe"}, tmp_path)
    store = TrustStore(tmp_path / "trusted.json")
    write(tmp_path / "trusted.json", f'{{"{tmp_path}/pipe": "00"}}')
    assert not store.is_trusted(tmp_path / "pipe")


@pytest.mark.parametrize("device", [False, True])
def test_a_corpus_that_is_no_file_is_refused_without_waiting(tmp_path: Path, device: bool) -> None:
    """Reading a pipe would block forever, and ``/dev/zero`` never ends."""
    path = tmp_path / "corpus.jsonl"
    if device:
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(path)
    with pytest.raises(SourceError, match="it is not a regular file"):
        Corpus("c", path).scan()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = " + "[" * 20_000, "not TOML: "),
        ("x = " + "[" * 300 + "]" * 300, "it is nested too deeply"),
        ("x = " + "1" * 5_000, "a number has too many digits"),
        ("\n" + ".".join("a" * 20_000) + " = 1", ":2 is not TOML: a key has more than 64 parts"),
        ("[" + ".".join(['"a"'] * 20_000) + "]", "a key has more than 64 parts"),
        ("#" * (MAX_FILE_SIZE + 1), "it has more than 1,048,576 bytes"),
        (f"search.limit = '{'x' * 100_000}'", "it must be a whole number of at least 1."),
        (f"{'x' * 100_000} = 1", "`repertory config show` lists them."),
        (f"[[policy]]\nitem = 'a'\npin = ['{'x' * 100_000}']", "phrases of 1 to 128 characters."),
        (f'[[sources]]\ntype = "skills"\npath = "{"x" * 100_000}\\u0000"', "write it without."),
    ],
)
def test_the_error_of_a_hostile_configuration_file_names_it(
    tmp_path: Path, content: str, message: str
) -> None:
    """The error is a bounded ConfigurationError, no crash."""
    write(tmp_path / "repertory.toml", content)
    with pytest.raises(ConfigurationError) as caught:
        load({}, tmp_path, {})
    assert str(caught.value).startswith(str(tmp_path / "repertory.toml"))
    assert message in str(caught.value)
    assert len(str(caught.value)) <= BEGINNING + END + 3


@pytest.mark.parametrize("end", ["\n", "\r", "\u2028"])
@pytest.mark.parametrize("before", ["", "a: 1\n...\n"])
def test_many_yaml_directives_are_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, before: str, end: str
) -> None:
    """The YAML parser does not get them, because it compares each with all before it."""
    for parser in ("BaseLoader", "CBaseLoader"):
        monkeypatch.setattr(f"yaml.{parser}", None, raising=False)
    tags = "".join(f"%TAG !{number}! x{end}" for number in range(101))
    loaded = structured.load(f"{before}{tags}--- {{a: 1}}\n", "yaml")
    assert loaded == structured.Defect("it has more than 100 %TAG directives")


def test_a_few_yaml_directives_are_read() -> None:
    """A few are legitimate, and a text value may mention many."""
    text = "%YAML 1.1\n%TAG !a! x\n---\na: '" + "%TAG " * 200 + "'\n"
    assert structured.load(text, "yaml") == {"a": "%TAG " * 200}


def test_a_found_configuration_file_does_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    """A named one may lead out, because the user chose it."""
    project, mine = tmp_path / "project", tmp_path / "mine.toml"
    project.mkdir()
    write(mine, "[search]\nlimit = 7\n")
    (project / "repertory.toml").symlink_to(mine)
    with pytest.raises(ConfigurationError, match="it leads out of"):
        load({}, project, {})
    assert load({"config": "repertory.toml"}, project, {}).values.limit == 7


def test_a_found_mcp_configuration_is_small_and_inside_the_project(tmp_path: Path) -> None:
    """A trusted one may be large, or a link that leads out."""
    project = tmp_path / "project"
    project.mkdir()
    write(tmp_path / "mine.json", SERVERS)
    (project / ".mcp.json").symlink_to(tmp_path / "mine.json")
    write(project / "mcp.json", " " * MAX_FOUND_SIZE + SERVERS)
    for name, message in ((".mcp.json", "leads out of"), ("mcp.json", "more than 1,048,576 bytes")):
        entry = {"type": "mcp", "config": str(project / name)}
        with pytest.raises(ConfigurationError, match=message):
            build(entry, project)
        assert len(build({**entry, "trusted": True}, project)) == 1


@contextmanager
def passes(size: int) -> Iterator[list[str]]:
    """The names of the methods that are called on texts of at least this size."""
    names: list[str] = []

    def note(_: object, event: str, called: object) -> None:
        text = getattr(called, "__self__", None) if event == "c_call" else None
        if isinstance(text, str | bytes) and len(text) >= size:
            names.append(getattr(called, "__name__", ""))

    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(None)


def test_many_faulty_servers_are_read_in_one_pass(tmp_path: Path) -> None:
    """The line of each faulty server is found, among many lines, in JSON and in TOML.

    The text is not searched again for each of them.
    """
    faulty = [f'"s{number}": {{"type": "x"}}' for number in range(200)]
    breaks = 100_000
    write(tmp_path / ".mcp.json", '{"mcpServers": {' + "\n" * breaks + ",\n".join(faulty) + "}}")
    write(tmp_path / "config.toml", "\n".join(f"[mcp_servers.s{n}]" for n in range(200)))
    with passes(breaks) as names:
        servers = read_files([tmp_path / ".mcp.json"], tmp_path).servers
    assert len(names) < 50, names
    assert f".mcp.json:{breaks + 1}: the MCP server s0 " in servers[0].fault
    assert f".mcp.json:{breaks + 200}: the MCP server s199 " in servers[199].fault
    servers = read_files([tmp_path / "config.toml"], tmp_path).servers
    assert "config.toml:200: the MCP server s199 " in servers[199].fault


def test_short_reads_of_a_file_system_truncate_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read may return fewer bytes than requested. A file that shrinks meanwhile just ends."""
    file = write(tmp_path / "long.md", "Some words. " * 9_000)
    read = os.read
    monkeypatch.setattr(os, "read", lambda file, size: read(file, min(size, 4_096)))
    assert read_bytes(str(file), 10**6).decode() == file.read_text("utf-8")
    assert read_inside(str(tmp_path), "long.md", 10**6, is_text=True) == file.read_bytes()
    assert read_beginning(str(tmp_path), "long.md", 10_000) == file.read_bytes()[:10_000]
    monkeypatch.setattr(os, "read", lambda file, size: read(file, size)[:0])
    assert read_bytes(str(file), 10**6) == b""


def test_a_link_that_replaces_a_folder_in_the_meantime_is_not_followed(tmp_path: Path) -> None:
    """It is created between the walk and the read. A link that stays inside is followed."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root / "folder" / "a.md", "inside")
    write(outside / "a.md", "outside")
    [found] = Walk(root, lambda name: name.endswith(".md")).files
    (root / "folder").rename(root / "moved")
    (root / "folder").symlink_to(outside)
    text, problems = read_file(found)
    assert text is None
    assert "leads out of" in problems[0].message
    (root / "folder").unlink()
    (root / "folder").symlink_to("moved")
    assert read_file(found) == ("inside", [])


def test_a_link_that_replaces_a_skill_in_the_meantime_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is swapped between reading its SKILL.md and reading the files beside it."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root / "pdf" / "SKILL.md", "---\nname: pdf\ndescription: Fills forms.\n---\nFill.\n")
    write(root / "pdf" / "inside.md", "inside")
    write(outside / "outside.md", "outside")
    [item] = SkillFolders(name="skills", path=root).scan().items
    parse = frontmatter.parse

    def swap(text: str, path: str) -> frontmatter.FrontMatter:
        (root / "pdf").rename(root / "moved")
        (root / "pdf").symlink_to(outside)
        return parse(text, path)

    monkeypatch.setattr(frontmatter, "parse", swap)
    assert [one.place for one in files_of(item).files] == ["inside.md"]
    assert files_of(item).withheld
    with pytest.raises(UnknownItemError):
        content_of(item, "outside.md")


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Exchange two paths atomically and repeatedly in another thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    exchange = [-100, os.fsencode(one), -100, os.fsencode(other), 2]  # AT_FDCWD, RENAME_EXCHANGE
    if not hasattr(libc, "renameat2") or libc.renameat2(*exchange):
        pytest.skip("this file system cannot exchange two paths")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            libc.renameat2(*exchange)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_no_read_wins_a_race_against_a_link(tmp_path: Path) -> None:
    """The folder and a link to the outside are exchanged all the time."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root / "folder" / "a.md", "inside")
    write(outside / "a.md", "outside")
    (root / "link").symlink_to(outside)
    [found] = Walk(root, lambda name: name.endswith(".md")).files
    with swapping(root / "folder", root / "link"):
        texts = {read_file(found)[0] for _ in range(3_000)}
    assert texts == {"inside", None}


def test_the_reader_follows_no_link_out_of_a_folder(tmp_path: Path) -> None:
    """This applies to files and folders, and a loop is an error.

    Without a root, links are followed.
    """
    write(tmp_path / "outside" / "a", "outside")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").symlink_to(tmp_path / "outside" / "a")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to("loop")
    for place in ("file", "folder/a"):
        with pytest.raises(UnfitFileError, match="leads out of"):
            read_inside(str(root), place, 100)
    with pytest.raises(OSError, match="loop"):
        read_inside(str(root), "loop", 100)
    assert read_bytes(str(root / "file"), 100) == b"outside"


@pytest.mark.parametrize("above", ["", "missing/../"])
def test_a_long_chain_of_links_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    """Only a few links are read, even below a missing folder. Other files are still read."""
    write(tmp_path / "a.md", "# A\n\nText.\n")
    (tmp_path / "l0").symlink_to("a.md")
    for count in range(1, 1_200):
        (tmp_path / f"l{count}").symlink_to(f"{above}l{count - 1}")
    (tmp_path / "first.md").symlink_to("l20")
    (tmp_path / "last.md").symlink_to("l1199")
    looked: list[str] = []
    readlink = os.readlink

    def look(path: str) -> str:
        looked.append(path)
        return readlink(path)

    monkeypatch.setattr(os, "readlink", look)
    monkeypatch.chdir(tmp_path)  # an unknown place must not count as the working directory
    assert not followed(tmp_path / "last.md")
    assert not lies_in(tmp_path / "last.md", tmp_path)
    assert len(looked) < 100
    assert followed(tmp_path / "first.md") == str(tmp_path.resolve() / "a.md")
    root = str(tmp_path.resolve())
    reads: list[Callable[[], bytes]] = [
        lambda: read_within(f"{root}/l1199/a", root, 100),
        lambda: read_within(f"{root}/a.md", f"{root}/l1199", 100),
        lambda: read_inside(root, "l1199", 100),
    ]
    for read in reads:
        with pytest.raises(UnfitFileError, match="too many links"):
            read()
    assert discover(tmp_path).entries
    assert len(Documents(name="d", path=tmp_path).scan().items) == 2


@given(st.lists(st.tuples(st.sampled_from(PARTS), st.lists(st.sampled_from(PARTS)))))
def test_a_path_is_resolved_as_by_the_system(links: list[tuple[str, list[str]]]) -> None:
    """The links are arbitrary, but few."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        (top / "a").mkdir()
        for name, target in links:
            if not os.path.lexists(top / name):
                (top / name).symlink_to("/".join(target) or ".")
        for place in ("a", "b", "c/a", "b/../c", "a/b/../c/d"):
            real = followed(top / place)
            assert real == os.path.realpath(top / place) or not (real or (top / place).exists())


def test_each_pattern_of_gitignore_files_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many folders may have the same file, and a pattern may be unusable."""
    compiled: list[str] = []
    pattern = GitIgnoreSpecPattern.pattern_to_regex

    def count(text: str) -> object:
        compiled.append(text)
        return pattern(text)

    monkeypatch.setattr(GitIgnoreSpecPattern, "pattern_to_regex", count)
    for number in range(20):
        write(tmp_path / f"d{number}" / ".gitignore", "**/*once*\n!\n/b/[c\n")
        write(tmp_path / f"d{number}" / "a.md", "# A\n\nText.\n")
    assert len(Documents(name="d", path=tmp_path).scan().items) == 20
    assert max(Counter(compiled).values()) == 1


def test_the_number_of_different_gitignore_patterns_is_limited(tmp_path: Path) -> None:
    """A problem names each file that is not used, until the file is shorter."""
    for number in range(5):
        lines = "\n".join(f"{'x' * 64}{number}{line}" for line in range(900))
        write(tmp_path / f"d{number}" / ".gitignore", f"a.md\n{lines}")
        write(tmp_path / f"d{number}" / "a.md", "# A\n\nText.\n")
    source = Documents(name="d", path=tmp_path)
    scan = source.scan()
    assert [item.id for item in scan.items] == ["d/d4/a.md"]
    [problem] = scan.problems
    assert problem.path == str(tmp_path / "d4" / ".gitignore")
    assert "are not used" in problem.message
    file = write(tmp_path / "d4" / ".gitignore", "a.md\n")
    change = source.rescan([str(file)])
    assert change is not None
    assert change.gone == frozenset({"d/d4/a.md"})
    assert not change.summary.problems


@pytest.mark.parametrize("below", [True, False])
def test_a_reader_may_follow_no_link_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: bool
) -> None:
    """A link to the file or above it is refused, even if files cannot be opened by descriptor."""
    monkeypatch.setattr(untrusted_files, "_OPENS_BELOW", below)
    write(tmp_path / "folder" / "file", "inside")
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "folder" / "again").symlink_to("file")
    root = str(tmp_path.resolve())
    with contextlib.closing(OpenFolder(root)) as folder:
        assert folder.read("folder/file", 100) == b"inside"
        for place in ("link/file", "folder/again"):
            assert read_inside(root, place, 100) == b"inside"
            with pytest.raises(UnfitFileError, match="it is a link"):
                folder.read(place, 100)


def test_a_hostile_gitignore_takes_little_time(tmp_path: Path) -> None:
    """It has short patterns of many stars, and the nested folders have long names."""
    write(tmp_path / ".gitignore", "**/*a*/**/*a*/**/*a*b\n" + "*a*a*a*a*a*a*a*a*a*a*b\n")
    write(Path(tmp_path, *["a" * 250] * 8, "a.md"), "# A\n\nText.\n")
    assert len(Documents(name="d", path=tmp_path).scan().items) == 1


def test_unused_gitignore_patterns_are_a_problem(tmp_path: Path) -> None:
    """Only the first 1,000 of a file are used, and none of a file with many for a long path."""
    file = write(tmp_path / ".gitignore", "# A comment.\n" * 6_000 + "*.md\n")
    write(tmp_path / "a.md", "# A\n\nText.\n")
    scan = Documents(name="d", path=tmp_path).scan()
    assert (scan.items, scan.problems) == ([], [])
    patterns = "".join(f"x{number}\n" for number in range(999))
    file.write_text(f"{patterns}y\n*.md\n")
    scan = Documents(name="d", path=tmp_path).scan()
    assert [item.id for item in scan.items] == ["d/a.md"]
    assert [problem.path for problem in scan.problems] == [str(file)]
    file.write_text(f"*.md\n{patterns}")
    write(Path(tmp_path, *["a" * 250] * 2, "a.md"), "# A\n\nText.\n")
    scan = Documents(name="d", path=tmp_path).scan()
    assert len(scan.items) == 1
    assert [problem.path for problem in scan.problems] == [str(file)]


def test_an_unread_gitignore_is_a_problem(tmp_path: Path) -> None:
    """The problem names the limit of its size, until the file is shorter; an empty file is fine."""
    file = write(tmp_path / "d" / ".gitignore", "*.md\n" + "#\n" * (FILE_LIMIT // 2))
    write(tmp_path / "d" / "a.md", "# A\n\nText.\n")
    write(tmp_path / "e" / ".gitignore", "\n")
    write(tmp_path / "e" / "b.md", "# B\n\nText.\n")
    source = Documents(name="d", path=tmp_path)
    scan = source.scan()
    assert [item.id for item in scan.items] == ["d/d/a.md", "d/e/b.md"]
    [problem] = scan.problems
    assert (problem.path, problem.severity) == (str(file), Severity.WARNING)
    assert "more than 1,048,576 bytes" in problem.message
    file.write_text("*.md\n")
    change = source.rescan([str(file)])
    assert change is not None
    assert change.gone == frozenset({"d/d/a.md"})
    assert not change.summary.problems


def test_many_patterns_of_nested_gitignores_take_little_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each path has a limited number of patterns, fewer if it is long; the nearest files win."""
    patterns = "".join(f"**/*a*/**/*a*b{number}\n" for number in range(999))
    for depth in range(4):
        write(Path(tmp_path, *["a" * 50] * depth, ".gitignore"), f"{patterns}x{depth}\n")
    ignored = GitIgnore(tmp_path)
    place = "/".join(["a" * 50] * 3)
    assert ignored.ignores(f"{'a' * 50}/x1")
    assert ignored.ignores(f"{place}/x3")
    assert ignored.ignores(f"{place}/x2")
    assert not ignored.ignores(f"{place}/x0")
    tried: list[int] = []
    check_file = GitIgnoreSpec.check_file

    def count(spec: GitIgnoreSpec, file: str) -> object:
        tried.append(len(spec))
        return check_file(spec, file)

    monkeypatch.setattr(GitIgnoreSpec, "check_file", count)
    for characters, most in ((2, 2_000), (300, 1_000), (1_000, 0)):
        tried.clear()
        assert not ignored.ignores(f"{place}/{'a/' * (characters // 2)}")
        assert sum(tried) == most


PARSERS: dict[str, tuple[Callable[[str], object], list[tuple[str, str]]]] = {
    "toml": (
        lambda text: structured.load(text, "toml"),
        [
            ("", "a.b.c\n"),
            ("x = ", "["),
            ("", "[a.b]\n"),
            ('"', '\\"'),
            ("", '"a".'),
            ("x=", "{a="),
        ],
    ),
    "json": (lambda text: structured.load(text, "json"), [("", "["), ('{"a":', '"\\"'), ("", " ")]),
    "yaml": (lambda text: structured.load(text, "yaml"), [("", "["), ("a: ", "x: "), ("", "- ")]),
    "front matter": (
        lambda text: frontmatter.parse(text, "a"),
        [("---\n", "a: b: c\n"), ("---\n", "\n"), ("---\n", " "), ("", "-"), ("---\na: ", "b: ")],
    ),
    "markdown": (
        lambda text: (first_heading(text), first_paragraph(text), split_at_headings(text)),
        [("# ", " "), ("# a", " #"), ("", "- "), ("", "`"), ("", "#\n"), ("# ", "a #")],
    ),
    "mcp": (
        lambda text: mended(text.encode(), []),
        [("[", '"\\'), ('{"a":', "["), ("{", '"id": ')],
    ),
    "text": (clean, [("a", "\u200d"), ("", "a\ufe0f"), ("\U0001f3f4", "\U000e0061")]),
}


@pytest.mark.parametrize("name", PARSERS)
def test_time_grows_with_the_text(name: str) -> None:
    """A hostile text of 10 or 100 times the size takes at most about 10 or 100 times as long."""
    parse, texts = PARSERS[name]

    def is_slow(head: str, part: str) -> bool:
        return grows_too_fast(parse, lambda size: head + part * size + "x", (300, 3_000, 30_000))

    assert not [one for one in texts if is_slow(*one)]


def test_the_time_to_read_servers_grows_with_the_file(tmp_path: Path) -> None:
    """The file is an open string of many escaped quotes."""

    def read(text: str) -> None:
        path = write(tmp_path / ".mcp.json", text)
        with pytest.raises(ConfigurationError):
            read_files([path])

    assert not grows_too_fast(read, lambda size: '"\\' * size, (500, 5_000, 50_000))


@pytest.mark.parametrize(
    "front", [f"name: a\ndescription: d{TAGS}", f'name: a\ndescription: "d{ESCAPED_TAGS}"']
)
def test_hidden_text_of_a_skill_is_removed_with_a_warning(tmp_path: Path, front: str) -> None:
    """It may be written literally or as escapes. The warning names the item."""
    write(tmp_path / "a" / "SKILL.md", f"---\n{front}\n---\nDo it.")
    scan = SkillFolders(name="team", path=tmp_path).scan()
    assert [item.description for item in scan.items] == ["d"]
    [problem] = scan.problems
    assert problem.item == "team/a"
    assert "control or invisible characters" in problem.message


def test_hidden_text_of_a_corpus_is_removed_with_a_warning(tmp_path: Path) -> None:
    """It is removed from schemas, too."""
    row = {"id": "a", "kind": "tool", "name": "a", "schema": {"description": f"x{TAGS}"}}
    write(tmp_path / "corpus.jsonl", json.dumps(row))
    scan = Corpus("c", tmp_path / "corpus.jsonl").scan()
    assert [item.input_schema for item in scan.items] == [{"description": "x"}]
    assert [problem.item for problem in scan.problems] == ["a"]


def test_a_corpus_cannot_take_much_memory_with_its_defects(tmp_path: Path) -> None:
    """A long line is a problem, and a file with very many defects is an error."""
    item = {"id": "a", "kind": "tool", "name": "a"}
    long = {**item, "id": "b", "schema": {"x": [{}] * 300_000}}
    write(tmp_path / "corpus.jsonl", f"{json.dumps(long)}\n{json.dumps(item)}\n")
    scan = Corpus("c", tmp_path / "corpus.jsonl").scan()
    assert [item.id for item in scan.items] == ["a"]
    assert ["more than 1,048,576 bytes" in problem.message for problem in scan.problems] == [True]
    write(tmp_path / "corpus.jsonl", json.dumps(item) + "\n{}" * 2_000)
    with pytest.raises(SourceError, match="more than 1,000 of its lines are no items"):
        Corpus("c", tmp_path / "corpus.jsonl").scan()


@pytest.mark.parametrize(
    "item_id", ["", " ", "a\nb", "a\n", "a\tb", "a\x1b[2J", "a\u2028b", "a" * 501]
)
def test_an_id_of_a_corpus_that_cannot_be_shown_is_a_problem(tmp_path: Path, item_id: str) -> None:
    """Only its own line is left out."""
    rows = [{"id": one, "kind": "tool", "name": "a"} for one in (item_id, "a" * 500, "à b/c")]
    write(tmp_path / "corpus.jsonl", "\n".join(map(json.dumps, rows)))
    scan = Corpus("c", tmp_path / "corpus.jsonl").scan()
    assert [item.id for item in scan.items] == ["a" * 500, "à b/c"]
    [problem] = scan.problems
    assert (problem.line, "id of this line" in problem.message) == (1, True)


def test_hidden_text_of_a_manifest_is_removed_with_a_warning(tmp_path: Path) -> None:
    """JSON writes such a character as two escapes."""
    manifest = json.dumps({"name": "a", "description": f"d{TAGS}"})
    assert "\\udb40" in manifest
    write(tmp_path / "a" / "skill.json", manifest)
    scan = PythonSkills(name="team", path=tmp_path).scan()
    assert [item.description for item in scan.items] == ["d"]
    assert [problem.item for problem in scan.problems] == ["team/a"]
