"""Git repositories as sources, fetched from ``git daemon`` and over HTTP."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from repertory.errors import ConfigurationError, SourceError
from repertory.sources import folder
from repertory.sources.fetched import content
from repertory.sources.fetched.writing import MAX_FILE_SIZE, Writer
from repertory.sources.git.program import Git
from repertory.sources.reading.files import Found, read_file
from repertory.sources.source import Problem
from tests.support.builders import write
from tests.support.elsewhere import (
    SKILL,
    Repository,
    Web,
    built,
    git_daemon,
    ids,
    refreshed,
    resolve_names,
)


@pytest.fixture(autouse=True)
def _no_configuration_of_git(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    own_home.mkdir()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with one skill."""
    made = Repository(tmp_path / "elsewhere" / "skills")
    made.add_skills("pdf")
    return made


@pytest.fixture
def daemon(repository: Repository) -> Iterator[str]:
    """The URL of the repository on a git daemon."""
    with git_daemon(repository.path.parent) as url:
        yield f"{url}/skills/.git"


def files(top: Path) -> set[str]:
    """The regular files below a folder, relative to it."""
    return {str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()}


def test_a_repository_is_fetched_and_refreshed(
    repository: Repository, daemon: str, tmp_path: Path
) -> None:
    """A refresh finds new skills. Neither the history nor .git is stored."""
    sources = built(tmp_path, type="git", url=daemon)
    assert refreshed(sources) == {"acme/skills/pdf"}
    commit = repository.add_skills("docx")
    assert ids(sources) == {"acme/skills/pdf"}
    assert refreshed(sources) == {"acme/skills/pdf", "acme/skills/docx"}
    content = sources[0].content  # type: ignore[attr-defined]
    assert content.state().revision == commit
    assert files(content.path) == {"skills/pdf/SKILL.md", "skills/docx/SKILL.md"}
    assert len(list(content.folder.glob("content-*"))) == 1
    everything = [content.folder, *content.folder.rglob("*")]
    assert not [one for one in everything if not one.is_symlink() and one.stat().st_mode & 0o077]


def test_a_data_directory_may_be_inside_another_repository(
    repository: Repository, daemon: str, tmp_path: Path
) -> None:
    """The remote of that repository is not contacted."""
    around = Repository(tmp_path / "around")
    around.git("remote", "add", "origin", "https://example.invalid/other.git")
    sources = built(around.path, type="git", url=daemon)
    assert refreshed(sources) == {"acme/skills/pdf"}
    commit = repository.add_skills("docx")
    assert refreshed(sources) == {"acme/skills/pdf", "acme/skills/docx"}
    assert sources[0].content.state().revision == commit  # type: ignore[attr-defined]


def test_a_folder_and_a_ref_can_be_chosen(
    repository: Repository, daemon: str, tmp_path: Path
) -> None:
    """The ref may be a branch, a lightweight or annotated tag, or a full commit id."""
    first = repository.git("rev-parse", "HEAD")
    repository.git("tag", "v1")
    repository.git("tag", "--annotate", "--message", "One", "noted")
    repository.git("checkout", "--quiet", "-b", "next")
    repository.add_skills("next")
    repository.git("checkout", "--quiet", "main")
    pdf, both = {"acme/pdf"}, {"acme/pdf", "acme/next"}
    refs = {"": pdf, "v1": pdf, "noted": pdf, "next": both, "refs/heads/next": both, first: pdf}
    for ref, expected in refs.items():
        given = {"ref": ref} if ref else {}
        sources = built(tmp_path, type="git", url=daemon, folder="skills", **given)
        assert refreshed(sources) == expected, ref


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ref": "gone"}, "no branch or tag 'gone'"),
        ({"folder": "gone"}, "no folder 'gone'"),
        ({"folder": "skills/pdf/SKILL.md"}, "no folder"),
    ],
)
def test_a_missing_ref_or_folder_is_an_error(
    daemon: str, tmp_path: Path, given: dict[str, str], message: str
) -> None:
    """The error of fetches and scans names the wrong value."""
    [source] = built(tmp_path, type="git", url=daemon, **given)
    with pytest.raises(SourceError, match=message):
        source.refresh()
    with pytest.raises(SourceError, match=message):
        source.scan()


def test_a_rewritten_branch_is_followed(
    repository: Repository, daemon: str, tmp_path: Path
) -> None:
    """The branch may be replaced by a forced push."""
    sources = built(tmp_path, type="git", url=daemon)
    refreshed(sources)
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.git("rm", "-r", "--quiet", "--force", ".")
    repository.add_skills("fresh")
    repository.git("branch", "--quiet", "--force", "main", "other")
    repository.git("checkout", "--quiet", "main")
    assert refreshed(sources) == {"acme/skills/fresh"}


def test_fetched_items_stay_while_the_server_is_down(
    repository: Repository, tmp_path: Path
) -> None:
    """Scans report the failed refresh, also in a new process."""
    sources = built(tmp_path, type="git", url="git://127.0.0.1:1/x")
    with pytest.raises(SourceError, match="cannot be fetched"):
        refreshed(sources)
    with git_daemon(repository.path.parent) as url:
        sources = built(tmp_path, type="git", url=f"{url}/skills/.git")
        refreshed(sources)
        address = url
    with pytest.raises(SourceError, match="cannot be fetched: unable to connect"):
        refreshed(sources)
    scan = sources[0].scan()
    assert [item.id for item in scan.items] == ["acme/skills/pdf"]
    assert f"{address}/skills/.git cannot be fetched" in scan.stale
    assert "The content that was fetched" in scan.stale
    again = built(tmp_path, type="git", url=f"{address}/skills/.git")
    assert again[0].scan().stale


def test_an_unchanged_repository_is_not_fetched_again(
    daemon: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only `ls-remote` is needed, and for a commit id not even that."""
    asked: list[str] = []
    call = Git.call

    def recorded(git: Git, *arguments: str, given: Path | None = None) -> Path:
        asked.append(arguments[0])
        return call(git, *arguments, given=given)

    monkeypatch.setattr(Git, "call", recorded)
    sources = built(tmp_path, type="git", url=daemon)
    refreshed(sources)
    asked.clear()
    refreshed(sources)
    assert asked == ["ls-remote"]
    revision = sources[0].content.state().revision  # type: ignore[attr-defined]
    pinned = built(tmp_path, type="git", url=daemon, ref=revision)
    refreshed(pinned)
    asked.clear()
    refreshed(pinned)
    assert asked == []


def test_only_regular_files_are_stored(repository: Repository, daemon: str, tmp_path: Path) -> None:
    """Links, submodules and large files are left out; filters, attributes and hooks do nothing."""
    key = write(tmp_path / "home" / "id_rsa", "secret")
    (repository.path / "skills" / "leak").mkdir()
    (repository.path / "skills" / "leak" / "SKILL.md").symlink_to(key)
    (repository.path / "out").symlink_to("/etc")
    write(repository.path / "large.bin", "x" * (MAX_FILE_SIZE + 1))
    write(repository.path / ".gitattributes", "* filter=evil ident export-ignore\n")
    write(repository.path / "a\\b.md", "odd")
    module = repository.git("rev-parse", "HEAD")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{module},module")
    repository.git("commit", "--quiet", "--message", "module")
    repository.git("add", "skills", "out", "large.bin", ".gitattributes", "a\\b.md")
    repository.git("commit", "--quiet", "--message", "more")
    touched = tmp_path / "touched"
    for name, value in {
        "filter.evil.smudge": f"touch {touched}",
        "filter.evil.process": f"touch {touched}",
        "core.fsmonitor": f"touch {touched}",
        "core.hooksPath": str(
            write(tmp_path / "hooks" / "post-checkout", f"#!/bin/sh\ntouch {touched}\n").parent
        ),
    }.items():
        repository.git("config", "--file", str(tmp_path / "home" / ".gitconfig"), name, value)
    (tmp_path / "hooks" / "post-checkout").chmod(0o755)
    [source] = built(tmp_path, type="git", url=daemon)
    assert refreshed([source]) == {"acme/skills/pdf"}
    content = source.content  # type: ignore[attr-defined]
    assert files(content.path) == {"skills/pdf/SKILL.md", ".gitattributes"}
    assert not any(path.is_symlink() for path in content.path.rglob("*"))
    assert not touched.exists()
    notes = " ".join(content.state().notes)
    for what in ("links (2)", "submodules (1)", "more than 16,777,216 bytes (1)", "systems (1)"):
        assert what in notes


def test_a_file_name_that_the_disk_does_not_allow_is_left_out(
    repository: Repository, tmp_path: Path
) -> None:
    """The other files of the commit are stored."""
    sources = built(tmp_path, type="git", url=str(repository.path))
    assert refreshed(sources) == {"acme/skills/pdf"}
    blob = repository.git("rev-parse", "HEAD:skills/pdf/SKILL.md")
    for name in (f"skills/{'z' * 300}.md", f"skills/{'z' * 300}/SKILL.md", "skills/new/SKILL.md"):
        repository.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    repository.git("commit", "--quiet", "--message", "more")
    assert refreshed(sources) == {"acme/skills/pdf", "acme/skills/new"}
    notes = sources[0].content.state().notes  # type: ignore[attr-defined]
    assert notes == ("Left out: files whose names this disk does not allow (2).",)


def test_content_that_cannot_be_written_is_an_error(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last content stays, and every scan gives the reason."""
    sources = built(tmp_path, type="git", url=str(repository.path))
    refreshed(sources)
    repository.add_skills("docx")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "write", Mock(side_effect=full))
        with pytest.raises(SourceError, match="No space left on device"):
            refreshed(sources)
    assert ids(sources) == {"acme/skills/pdf"}
    assert "No space left on device" in sources[0].scan().stale
    assert refreshed(sources) == {"acme/skills/pdf", "acme/skills/docx"}
    assert sources[0].scan().stale == ""


def test_a_failure_that_cannot_be_stored_is_still_reported(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk, scans of this process give the reason until a fetch succeeds."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    sources = built(tmp_path, type="git", url=str(repository.path))
    with monkeypatch.context() as patch:
        patch.setattr(content, "make_private", Mock(side_effect=full))
        patch.setattr(content, "write_atomically", Mock(side_effect=full))
        for _ in range(2):
            with pytest.raises(SourceError, match="No space left on device"):
                refreshed(sources)
            with pytest.raises(SourceError, match="No space left on device"):
                sources[0].scan()
    refreshed(sources)
    repository.add_skills("docx")
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "write", Mock(side_effect=full))
        patch.setattr(content, "write_atomically", Mock(side_effect=full))
        with pytest.raises(SourceError, match="No space left on device"):
            refreshed(sources)
        assert "No space left on device" in sources[0].scan().stale
    refreshed(built(tmp_path, type="git", url=str(repository.path)))  # like another process
    assert ids(sources) == {"acme/skills/pdf", "acme/skills/docx"}
    assert sources[0].scan().stale == ""


def test_a_reset_repository_is_followed_despite_an_outdated_state(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill or on a full disk, the stored state may describe the content before."""
    refreshed(built(tmp_path, type="git", url=str(repository.path)))
    repository.add_skills("docx")
    with monkeypatch.context() as patch:
        patch.setattr(content, "write_atomically", Mock(side_effect=OSError(errno.ENOSPC, "full")))
        found = refreshed(built(tmp_path, type="git", url=str(repository.path)))
    assert found == {"acme/skills/pdf", "acme/skills/docx"}
    repository.git("reset", "--quiet", "--hard", "HEAD~")
    assert refreshed(built(tmp_path, type="git", url=str(repository.path))) == {"acme/skills/pdf"}


def test_a_credential_helper_of_git_signs_in(repository: Repository, tmp_path: Path) -> None:
    """Without a password the fetch fails at once, without a prompt."""
    web = Web(repository.path.parent)
    web.login = "ada:pa55"
    with web.published() as url:
        sources = built(tmp_path, type="git", url=f"{url}/git/skills/.git")
        with pytest.raises(SourceError, match="credential helper of git"):
            refreshed(sources)
        store = tmp_path / "home" / ".git-credentials"
        store.write_text(f"{url.replace('://', '://ada:pa55@')}\n")
        repository.git(
            *("config", "--file", str(tmp_path / "home" / ".gitconfig")),
            *("credential.helper", f"store --file {store}"),
        )
        assert refreshed(sources) == {"acme/skills/pdf"}
        web.login = "ada:changed"
        with pytest.raises(SourceError) as failed:
            refreshed(sources)
        assert "pa55" not in str(failed.value)


def test_a_password_in_a_url_is_never_shown(repository: Repository, tmp_path: Path) -> None:
    """It is in no message, and in no stored file of the source."""
    web = Web(repository.path.parent)
    web.login = "ada:pa55word"
    with web.published() as url:
        secret = f"{url.replace('://', '://ada:pa55word@')}/git/skills/.git"
        [source] = built(tmp_path, type="git", url=secret)
        assert refreshed([source]) == {"acme/skills/pdf"}
        web.is_down = True
        with pytest.raises(SourceError) as failed:
            source.refresh()
    shown = f"{failed.value} {source.location} {source.identity()} {source.scan()}"
    assert "pa55word" not in shown
    with pytest.raises(ConfigurationError, match="is not in it") as refused:
        built(tmp_path, type="git", url=secret, folder="../x")
    assert "pa55word" not in str(refused.value)
    stored = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert not [path for path in stored if b"pa55word" in path.read_bytes()]


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% {touched}",
        "-uevil",
        "--upload-pack=touch {touched}",
        "https://-evil/x",
        "ssh://-oProxyCommand=touch/x",
        "-oProxyCommand=touch:x",
        "fd::17/x",
        "https://host/a b",
        "https://",
        "host",
        7,
    ],
)
def test_hostile_urls_are_refused(tmp_path: Path, url: object) -> None:
    """They are refused before git sees them."""
    with pytest.raises(ConfigurationError, match="not the URL of a git repository"):
        built(tmp_path, type="git", url=url)


@pytest.mark.parametrize("ref", ["-x", "--upload-pack=x", "a b", "a..b", "a:b", "", 3])
def test_hostile_refs_are_refused(tmp_path: Path, ref: object) -> None:
    """Only the empty ref is valid, and means the default branch."""
    if ref == "":
        assert built(tmp_path, type="git", url="https://h/x", ref=ref)
        return
    with pytest.raises(ConfigurationError, match="not a ref"):
        built(tmp_path, type="git", url="https://h/x", ref=ref)


def test_redirects_of_a_repository_do_not_lead_to_a_private_network(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A moved repository is found; Repertory and not git follows its redirect."""
    web = Web(repository.path.parent)
    end = "/info/refs"
    with web.published() as url:
        web.redirects = {f"/old{end}": f"{url}/git/skills/.git{end}?service=git-upload-pack"}
        assert refreshed(built(tmp_path, type="git", url=f"{url}/old")) == {"acme/skills/pdf"}
        private = url.replace("127.0.0.1", "localhost")
        web.redirects = {f"/new{end}": f"{private}/git/skills/.git{end}?service=git-upload-pack"}
        web.requests.clear()
        resolve_names(monkeypatch, private="localhost")
        with pytest.raises(SourceError, match="on a private network"):
            refreshed(built(tmp_path, type="git", url=f"{url}/new"))
        assert web.requests == [f"/new{end}"]


def test_git_uses_only_the_protocol_of_the_url(repository: Repository, tmp_path: Path) -> None:
    """Here git's own configuration replaces the URL with one of another protocol."""
    config = tmp_path / "home" / ".gitconfig"
    repository.git(
        "config", "--file", str(config), f"url.{repository.path}.insteadOf", "https://h/x"
    )
    repository.git("config", "--file", str(config), "protocol.file.allow", "always")
    [source] = built(tmp_path, type="git", url="https://h/x")
    with pytest.raises(SourceError, match="'file' not allowed"):
        source.refresh()


def test_an_interrupted_fetch_keeps_the_old_content(repository: Repository, tmp_path: Path) -> None:
    """Partial content is not read, and the next fetch removes it."""
    [source] = built(tmp_path, type="git", url=str(repository.path))
    refreshed([source])
    repository.add_skills("docx")
    content = source.content  # type: ignore[attr-defined]
    half = content.folder / "content-0123456789abcdef"
    write(half / "skills" / "half" / "SKILL.md", SKILL.format("half"))
    write(content.folder / ".git-x.tmp" / "objects" / "pack", "half")
    assert ids([source]) == {"acme/skills/pdf"}
    source.cancel()
    with pytest.raises(SourceError, match="it was interrupted"):
        source.refresh()
    assert ids([source]) == {"acme/skills/pdf"}
    assert not source.scan().stale
    again = built(tmp_path, type="git", url=str(repository.path))
    assert refreshed(again) == {"acme/skills/pdf", "acme/skills/docx"}
    assert not half.exists()
    assert not list(content.folder.glob(".*"))


def test_a_scan_never_sees_half_of_new_content(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the content is replaced during a scan, the scan starts again."""
    entry = {"type": "git", "url": str(repository.path), "folder": "skills"}
    [source] = built(tmp_path, **entry)
    repository.add_skills("docx", "xlsx")
    refreshed([source])
    texts = {f"skills/{n}/SKILL.md": SKILL.format(n) for n in ("pdf", "docx", "xlsx")}
    repository.commit({place: one.replace("team", "fleet") for place, one in texts.items()})
    reads: list[str] = []

    def replaced(file: Found, limit: int) -> tuple[str | None, list[Problem]]:
        reads.append(file.path)
        if len(reads) == 2:
            built(tmp_path, **entry)[0].refresh()
        return read_file(file, limit)

    monkeypatch.setattr(folder, "read_file", replaced)
    scan = source.scan()
    assert len(scan.items) == 3
    assert all("fleet" in item.description for item in scan.items)
    assert not scan.problems
    assert len(reads) == 6


def test_other_files_are_read_on_request(repository: Repository, tmp_path: Path) -> None:
    """Each kind of item has its own source; a skill at the top has the name of the source."""
    repository.commit({"docs/guide.md": "# Guide\n\nHow to.\n", "SKILL.md": SKILL.format("acme")})
    sources = built(tmp_path, type="git", url=str(repository.path), reads=["skills", "documents"])
    assert [source.name for source in sources] == ["acme", "acme-documents"]
    found = refreshed(sources)
    assert {"acme/skills/pdf", "acme/acme", "acme-documents/docs/guide.md"} <= found
    with pytest.raises(ConfigurationError, match="`reads` of the source acme"):
        built(tmp_path, type="git", url=str(repository.path), reads=["mcp"])


def test_a_missing_git_program_is_an_error(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    [source] = built(tmp_path, type="git", url=str(repository.path))
    with pytest.raises(SourceError, match="`git` is missing; install it"):
        source.refresh()


def test_the_file_for_the_errors_of_git_has_reserved_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise git could not report a full disk."""
    program = tmp_path / "bin" / "git"
    write(program, "#!/bin/sh\ntest -s errors && echo 'fatal: No space left' >&2\nexit 128\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    [source] = built(tmp_path, type="git", url="https://git.example.com/skills")
    with pytest.raises(SourceError, match="skills cannot be fetched: No space left"):
        source.refresh()


def test_programs_stay_executable(repository: Repository, tmp_path: Path) -> None:
    """They are executable for their owner only."""
    script = write(repository.path / "skills" / "pdf" / "run.sh", "#!/bin/sh\n")
    script.chmod(0o755)
    repository.commit()
    sources = built(tmp_path, type="git", url=str(repository.path))
    refreshed(sources)
    path = sources[0].content.path / "skills" / "pdf" / "run.sh"  # type: ignore[attr-defined]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700  # noqa: PTH116 - a mode
