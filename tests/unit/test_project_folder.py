"""A project's searchable files are read from the disk and stay up to date."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.errors import StoreError
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.project_search import folder as module
from repertory.project_search import listing
from repertory.project_search.folder import Folder
from repertory.project_search.query import ProjectQuery
from repertory.project_search.search import ProjectSearch
from repertory.project_search.snippets import CUT
from repertory.sources.reading.walk import Walk
from tests.support.builders import write

# Words may have accents, characters of an unspaced script, and ß, which folds to two letters.
WORD = st.text("abcXYZ_éßЖ文9", min_size=2, max_size=8)
PLACE = st.sampled_from(["a.py", "b.md", "src/c.txt", ".github/d.yml", "src/deep/e.json"])
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0t\n"


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def places(project: Path, leave_out: Path | None = None) -> list[str]:
    """The relative paths of the searched files."""
    return sorted(file.place for file in Folder(project, leave_out).files({}))


def found(search: ProjectSearch, text: str, *, fuzzy_search: bool = False) -> list[str]:
    """The paths of the results of a search, in order."""
    return [path for path, _ in previews(search, text, fuzzy_search=fuzzy_search)]


def previews(
    search: ProjectSearch, text: str, *, fuzzy_search: bool = False
) -> list[tuple[str, str]]:
    """The path and the snippet of each result of a search."""
    query = ProjectQuery(search_query=text, max_results=1_000, fuzzy_search=fuzzy_search)
    lines = search.search(None, query).content.split("\n")
    paths = [line.removeprefix("   Path: ") for line in lines if line.startswith("   Path: ")]
    shown = [line.removeprefix("   Preview: ") for line in lines if line.startswith("   Preview")]
    return list(zip(paths, shown, strict=True))


def entries(*items: Item) -> Mapping[str, Entry]:
    """The entries of items by the relative paths of their files in ``/project``."""
    index = KeywordIndex.empty().updated((), items)
    return {entry.path.removeprefix("/project/"): entry for entry in index.all()}


@settings(max_examples=25)
@given(texts=st.dictionaries(PLACE, st.lists(WORD, min_size=1, max_size=12), min_size=1))
def test_every_current_word_of_a_file_is_found(texts: dict[str, list[str]]) -> None:
    """An exact search finds the file and shows the word, but not after the word was removed."""
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary)
        search = ProjectSearch(project, Folder(project))
        for place, words in texts.items():
            write(project / place, " ".join(words))
        for place, words in texts.items():
            for word in words:
                snippets = dict(previews(search, word))
                expected = {
                    one
                    for one, others in texts.items()
                    if word.casefold() in " ".join(others).casefold()
                }
                assert place in expected <= set(snippets)
                bare = snippets[place].removeprefix(CUT).removesuffix(CUT)
                assert word.casefold() in bare.casefold()
        place, words = texts.popitem()
        write(project / place, "changed")
        for word in words:
            assert found(search, f"{word}") == sorted(
                one
                for one, others in texts.items()
                if word.casefold() in " ".join(others).casefold()
            )
        assert place in found(search, "changed")
        (project / place).unlink()
        assert place not in found(search, "changed")


def test_the_raw_text_of_a_file_is_searched(tmp_path: Path) -> None:
    """It includes front matter and lines that a parser leaves out."""
    write(tmp_path / "SKILL.md", "---\nname: dask\nlicense: BSD\n---\n# Dask\n\nBody.\n")
    write(tmp_path / "area.ns.txt", "DEFINE PROCEDURE Area\nCOMMENT:\nENDCOMMENT\n")
    search = ProjectSearch(tmp_path, Folder(tmp_path))
    assert found(search, "name: dask") == found(search, "LICENSE: bsd") == ["SKILL.md"]
    assert found(search, "define procedure") == found(search, "endcomment") == ["area.ns.txt"]


def test_words_in_older_encodings_are_found(tmp_path: Path) -> None:
    """The encoding of a file is detected."""
    texts = {"latin-1": "ein Köder", "cp932": "設定ファイル", "gb18030": "搜索文件"}
    for coding, text in texts.items():
        (tmp_path / f"{coding}.txt").write_bytes(text.encode(coding))
    search = ProjectSearch(tmp_path, Folder(tmp_path))
    assert [found(search, word) for word in ("köder", "設定", "搜索")] == [
        ["latin-1.txt"],
        ["cp932.txt"],
        ["gb18030.txt"],
    ]


def test_names_and_paths_are_searched(tmp_path: Path) -> None:
    """Files whose name matches come first, then matches of content, then of folders."""
    for place in ("helpers/a.py", "src/math_helpers.py", "logo.png"):
        write(tmp_path / place, "")
    write(tmp_path / "b.py", "import helpers")
    search = ProjectSearch(tmp_path, Folder(tmp_path))
    assert found(search, "helpers") == ["src/math_helpers.py", "b.py", "helpers/a.py"]
    assert found(search, "src/math") == ["src/math_helpers.py"]
    assert previews(search, "logo") == [("logo.png", "logo.png")]
    assert found(search, "math_helpres", fuzzy_search=True)[0] == "src/math_helpers.py"


def test_hidden_files_are_searched_and_secrets_are_not(tmp_path: Path) -> None:
    """Environments, keys, MCP configurations and git's files are secret; templates are not."""
    shown = [".env.example", ".github/ci.yml", ".gitignore", "a.json", "docs/keys.md"]
    for place in shown:
        write(tmp_path / place, "token")
    for place in (
        *(
            ".env",
            ".env.local",
            ".env~",
            ".envrc",
            "prod.env",
            "sub/.ENV",
            ".npmrc",
            ".netrc",
            "server.pem",
        ),
        *("id_ed25519", "deploy.key", ".ssh/config", ".aws/config", ".git/config", "sub/.git"),
        *("mcp.json", ".mcp.json", ".cursor/mcp.json", ".codex/config.toml", "secrets.yaml"),
        *("opencode.json", ".zed/settings.json", ".mcp.json.repertory-backup"),
        *("node_modules/x/index.js", "infra/prod.tfstate"),
    ):
        write(tmp_path / place, "token")
    write(tmp_path / "renamed.txt", f"token\n{KEY}")
    write(tmp_path / "account.json", json.dumps({"token": KEY}))
    write(tmp_path / "servers.json", '{"mcpServers": {"x": {"env": {"A": "token"}}}}')
    assert sorted(places(tmp_path)) == shown
    assert found(ProjectSearch(tmp_path, Folder(tmp_path)), "token") == shown


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + "lQOYBF" * 8,
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\nlQOYBF\n",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\r\nComment: mine\r\n\r\nlQOYBF\r\n",
    ],
)
def test_all_kinds_of_private_keys_are_left_out(tmp_path: Path, text: str) -> None:
    """PGP keys may have header lines before their content."""
    (tmp_path / "key.txt").write_bytes(text.encode())
    assert places(tmp_path) == []


def test_a_file_that_gets_a_secret_is_no_longer_shown(tmp_path: Path) -> None:
    """The text that was read before is also forgotten."""
    write(tmp_path / "notes.txt", "token")
    search = ProjectSearch(tmp_path, Folder(tmp_path))
    assert found(search, "token") == ["notes.txt"]
    write(tmp_path / "notes.txt", f"token {KEY}")
    assert found(search, "token") == found(search, "notes") == []


def test_files_that_git_ignores_are_not_searched(tmp_path: Path) -> None:
    """Rules come from the folder, its parents in the repository, the repository and the user."""
    project = tmp_path / "work" / "project"
    write(tmp_path / ".gitignore", "*\n")  # this file is outside the repository
    write(tmp_path / "work/.git/info/exclude", "local.md\n")
    write(tmp_path / "work/.gitignore", "*.log\n/project/build/\n!kept.tmp\n")
    write(project / ".gitignore", "drafts/\n!kept.log\n")
    write(Path.home() / ".config/git/ignore", "*.tmp\n")
    shown = [".gitignore", "kept.log", "kept.tmp", "shown.md", "sub/build/a.md"]
    for place in (*shown[1:], "a.log", "build/a.md", "drafts/a.md", "local.md", "x.tmp"):
        write(project / place)
    assert places(project) == shown


@pytest.mark.parametrize(
    ("named", "file"),
    [
        ("~/mine # of all", "mine"),
        ("{home}/mine", "mine"),
        ('"~/mine" ; all', "mine"),
        ('"~/a#b"', "a#b"),
        ('~/"a;b "# of all', "a;b "),
        (r'"~/a\"#\\b"', r'a"#\b'),
    ],
)
def test_the_configured_excludes_file_of_git_is_read(tmp_path: Path, named: str, file: str) -> None:
    """It replaces the default file, and its name is parsed as by git."""
    home = Path.home()
    write(home / ".gitconfig", f"[core]\n\tExcludesFile = {named.format(home=home)}\n")
    read = ["git", "config", "--global", "--type=path", "core.excludesFile"]
    if shutil.which("git"):
        done = subprocess.run(read, capture_output=True, text=True, check=True)
        assert done.stdout == f"{home / file}\n"
    write(home / file, "*.tmp\n")
    write(home / ".config/git/ignore", "*.md\n")
    for place in ("a.md", "b.tmp"):
        write(tmp_path / place)
    assert places(tmp_path) == ["a.md"]


def test_a_repository_of_the_home_directory_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository for configuration files usually ignores all other files."""
    home, link = Path.home(), tmp_path / "link"
    write(home / ".git/HEAD")
    write(home / ".gitignore", "*\n")
    write(home / "work/a.md")
    assert places(home / "work") == ["a.md"]
    link.symlink_to(home)
    monkeypatch.setenv("HOME", str(link))
    assert places(home / "work") == ["a.md"]


def test_a_worktree_has_the_excludes_of_its_repository(tmp_path: Path) -> None:
    """The ``.git`` of a worktree is a file that refers to the repository."""
    write(tmp_path / "main/.git/info/exclude", "local.md\n")
    write(tmp_path / "main/.git/worktrees/tree/commondir", "../..\n")
    write(tmp_path / "tree/.git", f"gitdir: {tmp_path}/main/.git/worktrees/tree\n")
    for place in ("a.md", "local.md"):
        write(tmp_path / "tree" / place)
    assert places(tmp_path / "tree") == ["a.md"]


def test_links_out_of_the_project_are_not_followed(tmp_path: Path) -> None:
    """This applies to files and folders; links within the project are followed."""
    write(tmp_path / "outside" / "secret.md", "token")
    project = tmp_path / "project"
    write(project / "a.md", "token")
    (project / "file.md").symlink_to(tmp_path / "outside" / "secret.md")
    (project / "folder").symlink_to(tmp_path / "outside")
    (project / "b.md").symlink_to("a.md")
    search = ProjectSearch(project, Folder(project))
    assert found(search, "token") == ["a.md", "b.md"]


def test_a_link_does_not_show_a_file_that_is_left_out(tmp_path: Path) -> None:
    """A link's name does not reveal a secret, an ignored file or the data directory."""
    write(tmp_path / ".gitignore", "build/\n")
    for place in (".env", "build/a.md", ".git/config", "data/b.md", "shown/c.md"):
        write(tmp_path / place, "token")
    for name, target in {
        "settings.txt": ".env",
        "built.md": "build/a.md",
        "built": "build",
        "git": ".git",
        "stored": "data",
        "again": "shown",
        "c.md": "shown/c.md",
        "d.md": "c.md",
    }.items():
        (tmp_path / name).symlink_to(target)
    assert places(tmp_path, leave_out=tmp_path / "data") == [
        *(".gitignore", "c.md", "d.md", "shown/c.md")
    ]


def test_a_file_that_becomes_a_link_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    """This holds even if the file was listed just before."""
    project = tmp_path / "project"
    write(tmp_path / "secret.md", "token")
    write(project / "a.md", "harmless")
    search = ProjectSearch(project, Folder(project))
    assert found(search, "harmless") == ["a.md"]
    (project / "a.md").unlink()
    (project / "a.md").symlink_to(tmp_path / "secret.md")
    assert found(search, "token") == []


def test_the_data_directory_is_left_out(tmp_path: Path) -> None:
    """It contains keys and other files of servers."""
    write(tmp_path / "a.md")
    write(tmp_path / "data" / "keys.json")
    assert places(tmp_path, leave_out=tmp_path / "data") == ["a.md"]


def test_new_files_and_rules_apply_to_the_next_search(tmp_path: Path) -> None:
    """This includes files in deep folders."""
    write(tmp_path / "a/b/old.md")
    folder = Folder(tmp_path)
    assert [file.place for file in folder.files({})] == ["a/b/old.md"]
    write(tmp_path / "a/b/new.md")
    assert [file.place for file in folder.files({})] == ["a/b/new.md", "a/b/old.md"]
    write(tmp_path / "a/.gitignore", "old.md\n.gitignore\n")
    assert [file.place for file in folder.files({})] == ["a/b/new.md"]
    write(tmp_path / "a/.gitignore", "new.md\n.gitignore\n")
    assert [file.place for file in folder.files({})] == ["a/b/old.md"]
    shutil.rmtree(tmp_path / "a/b")
    assert folder.files({}) == []


def test_folders_are_listed_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed content of files does not count, unless they contain ignore rules."""
    # Treat even the most recent modification times as reliable.
    monkeypatch.setattr(listing, "GRANULARITY", -(10**15))
    walks = []

    def counted(*given: Any, **named: Any) -> Walk:  # noqa: ANN401 - the arguments of Walk
        walks.append(given)
        return Walk(*given, **named)

    monkeypatch.setattr(listing, "Walk", counted)
    later = count(time.time_ns() + 10**9, 10**9)

    def changed(path: Path, text: str = "") -> list[str]:
        write(path, text)
        for one in (path, path.parent):
            os.utime(one, ns=(at := next(later), at))
        return [file.place for file in folder.files({})]

    write(tmp_path / "a/b.md", "one")
    write(tmp_path / "a/.gitignore", "")
    folder = Folder(tmp_path)
    assert [file.place for file in folder.files({})] == ["a/.gitignore", "a/b.md"]
    (tmp_path / "a/b.md").write_text("two")
    assert [file.content for file in folder.files({})] == ["", "two"]
    assert len(walks) == 1
    assert changed(tmp_path / "a/c.md") == ["a/.gitignore", "a/b.md", "a/c.md"]
    (tmp_path / "a/.gitignore").write_text("b.md")
    os.utime(tmp_path / "a/.gitignore", ns=(at := next(later), at))
    assert [file.place for file in folder.files({})] == ["a/.gitignore", "a/c.md"]
    assert len(walks) == 3


def test_unchanged_files_are_the_same_objects(tmp_path: Path) -> None:
    """This includes files that are read again because they changed very recently."""
    write(tmp_path / "a.py", "one")
    write(tmp_path / "b.py", "two")
    folder = Folder(tmp_path)
    first = folder.files({})
    write(tmp_path / "b.py", "three")
    second = folder.files({})
    assert second[0] is first[0]
    assert [file.content for file in second] == ["one", "three"]


def test_large_and_binary_files_are_searched_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file and all texts together have a limit, which a search without results reports.

    It also counts the files whose names cannot be shown, which are not found at all.
    """
    monkeypatch.setattr(module, "MAX_LENGTH", 10)
    for name, text in (("a.py", "12345"), ("b.py", "x" * (1 << 21)), ("c.py", "123456")):
        write(tmp_path / name, text)
    (tmp_path / "d.bin").write_bytes(b"\0bin")
    (tmp_path / "e\a.py").write_text("nothing")
    folder = Folder(tmp_path)
    files = {file.place: file.content for file in folder.files({})}
    assert files == {"a.py": "12345", "b.py": "", "c.py": "", "d.bin": ""}
    assert folder.unread == 3
    search = ProjectSearch(tmp_path, folder)
    answer = search.search(None, ProjectQuery(search_query="nothing"))
    assert answer.content.endswith(
        "\n\nNot searched: the content of files that are too large or have names that cannot be "
        "shown (3).\n"
    )
    assert "Not searched" not in search.search(None, ProjectQuery(search_query="1234")).content
    (tmp_path / "a.py").unlink()
    (tmp_path / "c.py").touch()
    assert found(search, "123456") == ["c.py"]


def test_deep_folders_are_searched(tmp_path: Path) -> None:
    """Java projects, for example, have deep folders."""
    write(tmp_path / "/".join("abcdefghijklmn") / "x.java", "zebra")
    assert found(ProjectSearch(tmp_path, Folder(tmp_path)), "zebra") == [
        "a/b/c/d/e/f/g/h/i/j/k/l/m/n/x.java"
    ]


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    """It is not treated as an empty project."""
    search = ProjectSearch(tmp_path / "gone", Folder(tmp_path / "gone"))
    with pytest.raises(StoreError, match=r"folder .*/gone cannot be read \(No such file"):
        search.search(None, ProjectQuery(search_query="x"))


def test_the_file_of_an_item_has_the_id_of_the_item(tmp_path: Path) -> None:
    """The title of a skill is its name in the file; a document has the title in its text."""
    write(tmp_path / "s/SKILL.md", "---\nname: dask\ndescription: Arrays.\n---\n# On arrays\n")
    write(tmp_path / "a.md", "# A new title\n")
    write(tmp_path / "b.py", "code")
    items = entries(
        Item(id="p/dask", kind=Kind.SKILL, name="dask", source="p", path="/project/s/SKILL.md"),
        Item(id="d/a.md", kind=Kind.DOCUMENT, name="Old", source="d", path="/project/a.md"),
    )
    folder = Folder(tmp_path)
    files = {file.place: (file.id, file.title) for file in folder.files(items)}
    assert files == {
        "a.md": ("d/a.md", "a new title"),
        "b.py": ("files/b.py", "b.py"),
        "s/SKILL.md": ("p/dask", "dask"),
    }
    assert folder.files(items)[2].synopsis == "arrays."
    write(tmp_path / "s/SKILL.md", "---\nname: polars\n---\n# Frames\n")
    assert folder.files(items)[2].title == "polars"
    assert {file.id for file in folder.files({})} == {
        "files/a.md",
        "files/b.py",
        "files/s/SKILL.md",
    }
