"""Sources whose content is fetched: recognising, adding and removing them, and trust in them."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, cast

import pytest
from typing_extensions import override

from repertory.errors import ConfigurationError, SourceError, UsageError
from repertory.project.trust_requests import trust_request
from repertory.project.workspace import Workspace
from repertory.settings import Settings, load
from repertory.sources import adding
from repertory.sources.adding import Address, recognise
from repertory.sources.fetched.urls import masked, shown
from repertory.sources.registry import build
from repertory.sources.source import Source
from repertory_admin import fetched_sources
from repertory_admin.commands import add
from tests.support.builders import write
from tests.support.elsewhere import Repository, zipped

T = TypeVar("T")

GIT = '[[sources]]\ntype = "git"\nname = "{0}"\nurl = "{1}"\n'

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with one skill."""
    made = Repository(tmp_path / "elsewhere")
    made.add_skills("pdf")
    return made


@pytest.fixture
def project(own_home: Path) -> Path:
    """A project with a skill of its own."""
    folder = own_home / "project"
    write(folder / "skills" / "own" / "SKILL.md", "---\nname: own\ndescription: Its own.\n---\n")
    return folder


def settings(project: Path) -> Settings:
    """The settings of a project."""
    return load({"data_dir": str(project.parent / "data")}, project, {})


def names(project: Path) -> set[str]:
    """The names of the trusted sources, except ``documents``."""
    sources = Workspace(settings(project), project).catalogue().sources
    return {source.name for source in sources if source.is_trusted} - {"documents"}


def trust(project: Path) -> None:
    """Trust the project's configuration."""
    Workspace(settings(project), project).trust.trust(project / "repertory.toml")


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "git", "url": "https://host/a.git"},
        {"type": "archive", "url": "https://host/a.zip"},
        {"type": "marketplace", "url": "https://host/a.git"},
        {"type": "openapi", "url": "https://host/openapi.json"},
        {"type": "mcp-registry", "server": "a.b/c", "version": "1", "package": "npm"},
    ],
    ids=lambda entry: entry["type"],
)
def test_a_source_with_another_interval_is_not_equal(entry: dict[str, str], tmp_path: Path) -> None:
    """So a server that loads its configuration again follows the new interval."""

    def built(refresh: int) -> list[Source]:
        own = {"name": "a", "store": str(tmp_path), "refresh": refresh}
        return build({**entry, **own}, tmp_path)

    assert built(60) == built(60)
    assert all(one != other for one, other in zip(built(60), built(90), strict=True))


def test_a_found_configuration_fetches_nothing(project: Path, repository: Repository) -> None:
    """Until the user trusts it, no process is started and no server is asked."""
    write(project / "repertory.toml", GIT.format("acme", repository.path))
    workspace = Workspace(settings(project), project)
    [source] = [one for one in workspace.catalogue().sources if one.name == "acme"]
    assert not source.is_trusted
    assert not source.fetches
    source.refresh()
    assert source.watch(lambda: None, 1) is None
    command = f"repertory config trust {project / 'repertory.toml'}"
    with pytest.raises(SourceError, match=command):
        source.scan()
    assert not (project.parent / "data" / "fetched").exists()
    [reason] = workspace.sources.withheld()
    assert str(repository.path) in reason
    assert command in reason

    identity = source.identity()
    trust(project)
    again = Workspace(settings(project), project).catalogue()
    [source] = [one for one in again.sources if one.name == "acme"]
    source.refresh()
    assert [item.id for item in source.scan().items] == ["acme/skills/pdf"]
    assert source.identity() == identity  # so the index keeps its entries


@pytest.mark.parametrize("kind", ["git", "marketplace", "archive"])
def test_no_type_is_fetched_without_trust(project: Path, kind: str) -> None:
    """Each fetched type needs trust, and its URL is shown without the password."""
    text = f'[[sources]]\ntype = "{kind}"\nname = "e"\nurl = "https://ada:pa55@h.invalid/x.zip"\n'
    write(project / "repertory.toml", text)
    workspace = Workspace(settings(project), project)
    assert "e" not in names(project)
    [reason] = workspace.sources.withheld()
    assert "https://h.invalid/x.zip" in reason
    assert "pa55" not in reason


def test_an_untrusted_source_is_shown_with_the_variables_that_it_sends(project: Path) -> None:
    """Searches and trust requests show the URL, the called server, and the variables sent to it."""
    write(
        project / "repertory.toml",
        '[[sources]]\ntype = "openapi"\nname = "e"\nurl = "https://h.invalid/openapi.json"\n'
        'server = "https://evil.invalid"\nauth = {a = "${GITHUB_TOKEN}", b = "${env:OTHER:-x}"}\n'
        'headers = {X = "${input:key}"}\n',
    )
    place = (
        "https://h.invalid/openapi.json "
        "(called at https://evil.invalid with GITHUB_TOKEN, MCP_INPUT_KEY, OTHER)"
    )
    [reason] = Workspace(settings(project), project).sources.withheld()
    assert place in reason
    assert trust_request(project / "repertory.toml", settings(project).flags).wishes == [place]


def test_fetched_sources_are_added_to_the_discovered_sources(
    project: Path, own_home: Path, repository: Repository
) -> None:
    """Configured local sources replace the discovered ones; explicit paths replace all sources."""
    found = names(project)
    write(project / "repertory.toml", GIT.format("acme", repository.path))
    trust(project)
    assert names(project) == found | {"acme"}
    write(own_home / ".config" / "repertory" / "config.toml", GIT.format("mine", repository.path))
    assert names(project) == found | {"acme", "mine"}
    own = '[[sources]]\ntype = "skills"\nname = "only"\npath = "skills"\n'
    write(project / "repertory.toml", own + GIT.format("acme", repository.path))
    trust(project)
    assert names(project) == {"only", "acme", "mine"}
    Workspace(settings(project), project).set_paths([project / "skills"])
    assert not {"acme", "mine"} & names(project)


def test_a_policy_of_a_found_file_changes_no_fetched_item(
    project: Path, own_home: Path, repository: Repository
) -> None:
    """A project's policy applies only to the items of its own folder."""
    write(own_home / ".config" / "repertory" / "config.toml", GIT.format("mine", repository.path))
    text = '[[policy]]\nitem = "mine/skills/pdf"\npin = ["deploy"]\n'
    write(project / "repertory.toml", text)
    catalogue = Workspace(settings(project), project).catalogue()
    [source] = [one for one in catalogue.sources if one.name == "mine"]
    source.refresh()
    [item] = source.scan().items
    assert not catalogue.may_change()(catalogue.rules[0], item)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("https://github.com/acme/skills.git", "git", "skills"),
        ("https://github.com/acme/skills/", "git", "skills"),
        ("acme/skills", "git", "skills"),
        ("git@example.com:team/skills.git", "git", "skills"),
        ("ssh://git@example.com:2222/team/skills", "git", "skills"),
        ("https://example.com/a/team-skills.tar.gz?token=x", "archive", "team-skills"),
        ("https://example.com/pdf.skill", "archive", "pdf"),
        ("./local.zip", "archive", "local"),
        ("./elsewhere", "git", "elsewhere"),
        ("file://./elsewhere", "git", "elsewhere"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_addresses_are_recognised(tmp_path: Path, text: str, kind: str, name: str) -> None:
    """The type and name follow from the address and the local files, without a request."""
    (tmp_path / "local.zip").write_bytes(zipped({"a.md": "x"}))
    found = recognise(Address(text, tmp_path, {}))
    assert (found.entry["type"], found.entry["name"]) == (kind, name)


@pytest.mark.parametrize("text", ["", "host", "ext::sh -c id", "--help", "file:///etc"])
def test_other_addresses_are_refused(tmp_path: Path, text: str) -> None:
    """Bare host names, options and other schemes are not recognised."""
    with pytest.raises(UsageError, match="is not recognised"):
        recognise(Address(text, tmp_path, {}))


@pytest.mark.parametrize("text", ["./gone", "../gone", "~/gone", "/gone"])
def test_a_missing_path_is_refused_as_such(tmp_path: Path, text: str) -> None:
    """The error does not list the known types of addresses."""
    with pytest.raises(UsageError, match=r"^\S*gone does not exist\.$"):
        recognise(Address(text, tmp_path, {}))


def test_an_address_in_the_home_of_an_unknown_user_is_refused(tmp_path: Path) -> None:
    """The error is the same as for such a path in a configuration."""
    with pytest.raises(ConfigurationError, match="names a home that is unknown"):
        recognise(Address("~unknown-user/skills", tmp_path, {}))


def test_every_recognised_type_is_a_fetched_source() -> None:
    """The registry of sources knows each recognised type, and that its content is fetched."""
    from repertory.sources.registry import fetches  # noqa: PLC0415 - beside the other table

    assert all(fetches({"type": kind}) for kind in adding._TYPES)


def test_displayed_urls_have_no_secrets() -> None:
    """User, password, query and fragment are removed."""
    url = "https://ada:pa55@example.com:8443/a/b?token=s3cret#part"
    assert shown(url) == "https://example.com:8443/a/b"
    assert masked(f"fatal: '{url}': gone") == "fatal: 'https://example.com:8443/a/b': gone"
    assert shown("https://[bad/x") == "an invalid URL"
    assert shown("git@host:x/y") == "git@host:x/y"


def test_edits_during_the_confirmation_are_kept(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the entry is removed, from the file as it is after the answer."""
    file = write(project / "repertory.toml", GIT.format("sailing", "https://example.com/sailing"))

    def answered(*_: object, **__: object) -> None:
        file.write_text(file.read_text() + "\n[search]\nlimit = 7\n")

    monkeypatch.setattr(add, "confirm", answered)
    monkeypatch.chdir(project)
    add.remove({"data_dir": str(project.parent / "data")}, "sailing")
    assert file.read_text() == "[search]\nlimit = 7\n"


class HangingSource:
    """A source whose fetch lasts until it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.is_asked = False

    def refresh(self, *, may_ask: bool) -> None:
        """Wait for the cancellation."""
        self.is_asked = True
        assert not may_ask
        assert self.cancelled.wait(30)

    def cancel(self) -> None:
        """End the fetch."""
        self.cancelled.set()


def test_ctrl_c_ends_a_fetch_that_has_just_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal arrives before the fetch's result is awaited."""
    source = HangingSource()

    class Interrupted(ThreadPoolExecutor):
        @override
        def submit(self, fn: Callable[..., T], /, *args: object, **kwargs: object) -> Future[T]:
            submitted = super().submit(fn, *args, **kwargs)
            if fn == source.refresh:
                raise KeyboardInterrupt
            return submitted

    monkeypatch.setattr(fetched_sources, "ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetched_sources._refresh(cast("Source", source), may_ask=False)
    assert source.cancelled.is_set()


def test_ctrl_c_while_the_thread_starts_begins_no_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread whose start is interrupted is never joined, so it must not begin the fetch."""
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    source = HangingSource()
    with pytest.raises(KeyboardInterrupt):
        fetched_sources._refresh(cast("Source", source), may_ask=False)
    assert not source.is_asked
