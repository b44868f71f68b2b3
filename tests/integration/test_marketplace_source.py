"""Plugin marketplaces as sources, in a git repository and over HTTP."""

import errno
import hashlib
import json
import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from repertory.errors import SourceError
from repertory.project.workspace import Workspace
from repertory.settings import load
from repertory.sources.fetched import servers, urls
from repertory.sources.fetched.content import Content
from repertory.sources.fetched.fetcher import Declared
from repertory.sources.fetched.writing import Writer
from repertory.sources.marketplace.listing import Plugin, read_listing
from repertory.sources.marketplace.plugin import PluginCollector
from repertory.sources.registry import contained
from repertory.sources.source import Source
from tests.support.builders import write
from tests.support.elsewhere import (
    SKILL,
    Repository,
    Web,
    built,
    ids,
    marketplace,
    refreshed,
    resolve_names,
)
from tests.support.mcp_servers import SERVERS

LISTING = ".claude-plugin/marketplace.json"
REVIEW = "---\ndescription: Review the changes of this branch.\n---\n\nRead the diff.\n"
TESTER = (
    "---\nname: tester\ndescription: Writes tests first.\ntools: Read, Bash\n---\n\nYou test.\n"
)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A marketplace with three plugins, which have skills, commands and an agent."""
    made = Repository(tmp_path / "elsewhere" / "tools")
    quality = "plugins/quality"
    made.commit(
        {
            LISTING: marketplace(
                {"name": "quality", "source": "./plugins/quality", "version": "2.1.0"},
                {
                    "name": "documents",
                    "source": "./",
                    "strict": False,
                    "skills": ["./skills/pdf", "./skills/docx"],
                },
                {
                    "name": "spreadsheets",
                    "source": "./",
                    "strict": False,
                    "skills": "./skills/xlsx",
                },
            ),
            f"{quality}/.claude-plugin/plugin.json": json.dumps(
                {
                    "name": "quality",
                    "version": "2.1.0",
                    "description": "Reviews and tests",
                    "commands": ["./more/release.md"],
                }
            ),
            f"{quality}/commands/review.md": REVIEW,
            f"{quality}/more/release.md": REVIEW.replace("Review", "Release"),
            f"{quality}/agents/tester.md": TESTER,
            f"{quality}/skills/flaky-tests/SKILL.md": SKILL.format("flaky-tests"),
            f"{quality}/hooks/hooks.json": "{}",
            **{
                f"skills/{n}/SKILL.md": SKILL.format(n) for n in ("pdf", "docx", "xlsx", "unlisted")
            },
        }
    )
    return made


def marketplace_of(repository: Repository, tmp_path: Path) -> list[Source]:
    """The sources of a marketplace."""
    return built(tmp_path, type="marketplace", url=str(repository.path))


def servers_of(url: object, tmp_path: Path) -> dict[str, Any]:
    """The MCP servers that a marketplace declares, by name."""
    entry = {
        "type": "marketplace",
        "name": "acme",
        "url": str(url),
        "store": str(tmp_path / "store"),
    }
    found: dict[str, Any] = {}
    for one in contained(entry, tmp_path):
        found |= json.loads(Path(one["config"]).read_text())["mcpServers"]
    return found


def test_the_skills_commands_and_agents_of_plugins_are_items(
    repository: Repository, tmp_path: Path
) -> None:
    """Their ids contain the name of the plugin. Files that no plugin lists are left out."""
    sources = marketplace_of(repository, tmp_path)
    assert refreshed(sources) == {
        "acme/quality/flaky-tests",
        "acme/documents/pdf",
        "acme/documents/docx",
        "acme/spreadsheets/xlsx",
        "acme-prompts/quality/review",
        "acme-prompts/quality/release",
        "acme-prompts/quality/tester",
    }
    assert not [problem for one in sources for problem in one.scan().problems]


def test_a_changed_list_changes_the_items(repository: Repository, tmp_path: Path) -> None:
    """The files of the skill are the same, but its plugin has another name."""
    sources = marketplace_of(repository, tmp_path)
    refreshed(sources)
    plugin = {"name": "renamed", "source": "./", "skills": ["./skills/pdf"]}
    repository.commit({LISTING: marketplace(plugin)})
    assert refreshed(sources) == {"acme/renamed/pdf"}


def test_plugins_of_other_repositories_are_fetched(repository: Repository, tmp_path: Path) -> None:
    """A plugin has a ref and a folder. One that fails is reported, and keeps its content."""
    other = Repository(tmp_path / "elsewhere" / "other")
    first = other.commit({"plugin/skills/maps/SKILL.md": SKILL.format("maps")})
    other.commit({"plugin/skills/routes/SKILL.md": SKILL.format("routes")})
    web = Web(tmp_path / "elsewhere")
    with web.published() as url:
        source = {"source": "git-subdir", "url": f"{url}/git/other/.git", "path": "plugin"}
        gone = {"source": "url", "url": f"{url}/git/gone/.git"}
        listing = marketplace(
            {"name": "pinned", "source": {**source, "sha": first}},
            {"name": "latest", "source": {**source, "ref": "main"}},
            {"name": "gone", "source": gone},
            {"name": "packed", "source": {"source": "npm", "package": "@acme/plugin"}},
        )
        repository.commit({LISTING: listing})
        sources = marketplace_of(repository, tmp_path)
        expected = {"acme/pinned/maps", "acme/latest/maps", "acme/latest/routes"}
        assert refreshed(sources) == expected
        notes = " ".join(str(one) for one in sources[0].scan().problems)
        assert "The plugin gone was not fetched" in notes
        assert "The plugin packed was left out: a source of type 'npm' is not supported" in notes
        other.commit({"plugin/skills/stops/SKILL.md": SKILL.format("stops")})
        assert refreshed(sources) == expected | {"acme/latest/stops"}
        web.is_down = True
        repository.commit({"unrelated.md": "x"})
        assert refreshed(sources) == expected | {"acme/latest/stops"}
        assert "The plugin latest was not fetched" in str(sources[0].scan().problems)


def test_the_size_of_all_plugins_together_is_limited_over_several_fetches(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unchanged plugins count, too; the old content of a plugin that becomes too large stays."""
    names = ("first", "second")
    others = {name: Repository(tmp_path / "elsewhere" / name) for name in names}
    for name, other in others.items():
        other.commit({f"skills/{name}/SKILL.md": SKILL.format(name)})
    size = 2 * len(SKILL.format("second")) + 1_000
    monkeypatch.setattr("repertory.sources.marketplace.fetcher.MAX_SIZE", size)
    with Web(tmp_path / "elsewhere").published() as url:
        plugins = [
            {"name": name, "source": {"source": "url", "url": f"{url}/git/{name}/.git"}}
            for name in names
        ]
        repository.commit({LISTING: marketplace(*plugins)})
        sources = marketplace_of(repository, tmp_path)
        expected = {f"acme/{name}/{name}" for name in names}
        assert refreshed(sources) == expected
        problems = []
        for name, other in others.items():
            other.commit({"large.md": "x" * 900, f"skills/more-{name}/SKILL.md": "x"})
            refreshed(sources)
            problems.append(str(sources[0].scan().problems))
        assert "all plugins together" not in problems[0]
        assert "The plugin second was not fetched: all plugins together have" in problems[1]
        assert expected <= ids(sources)
        assert "acme/second/more-second" not in ids(sources)


@pytest.mark.parametrize("is_pinned", [False, True])
def test_another_folder_of_a_repository_is_fetched(
    repository: Repository, tmp_path: Path, is_pinned: bool
) -> None:
    """The list changes the folder, while the repository of the plugin has not changed."""
    other = Repository(tmp_path / "elsewhere" / "other")
    pin = {"sha": other.commit({f"{one}/skills/{one}/SKILL.md": SKILL.format(one) for one in "ab"})}
    with Web(tmp_path / "elsewhere").published() as url:
        source = {"source": "git-subdir", "url": f"{url}/git/other/.git"}
        source |= pin if is_pinned else {}
        sources = marketplace_of(repository, tmp_path)
        for folder in "ab":
            plugin = {"name": "other", "source": {**source, "path": folder}}
            repository.commit({LISTING: marketplace(plugin)})
            assert refreshed(sources) == {f"acme/other/{folder}"}


def test_notes_about_omitted_files_stay(repository: Repository, tmp_path: Path) -> None:
    """They stay for parts that have not changed since the last fetch."""
    other = Repository(tmp_path / "elsewhere" / "other")
    for made in (repository, other):
        (made.path / "link").symlink_to("elsewhere")
    other.commit({"skills/maps/SKILL.md": SKILL.format("maps")})
    with Web(tmp_path / "elsewhere").published() as url:
        source = {"source": "url", "url": f"{url}/git/other/.git"}
        repository.commit({LISTING: marketplace({"name": "other", "source": source})})
        sources = marketplace_of(repository, tmp_path)
        content = sources[0].content  # type: ignore[attr-defined]  # of a fetched source
        refreshed(sources)
        notes, version = content.state().notes, content.version
        assert notes == ("Left out: links (1).", "The plugin other: Left out: links (1).")
        refreshed(sources)
        assert (content.state().notes, content.version) == (notes, version)
        repository.commit({"unrelated.md": "x"})
        refreshed(sources)
        assert content.state().notes == notes


def test_a_plugin_that_cannot_be_written_does_not_block_others(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reported like a plugin that cannot be fetched."""
    for name in ("odd", "maps"):
        Repository(tmp_path / "elsewhere" / name).commit(
            {f"skills/{name}/SKILL.md": SKILL.format(name)}
        )
    write_file = Writer.write

    def write_most(writer: Writer, place: str, *given: Any, **named: Any) -> None:  # noqa: ANN401 - passed on
        if "odd" in place:
            raise OSError(errno.EIO, "Input/output error")
        write_file(writer, place, *given, **named)

    monkeypatch.setattr(Writer, "write", write_most)
    with Web(tmp_path / "elsewhere").published() as url:
        plugins = [
            {"name": name, "source": {"source": "url", "url": f"{url}/git/{name}/.git"}}
            for name in ("odd", "maps")
        ]
        repository.commit({LISTING: marketplace(*plugins)})
        sources = marketplace_of(repository, tmp_path)
        assert refreshed(sources) == {"acme/maps/maps"}
        notes = " ".join(str(one) for one in sources[0].scan().problems)
        assert "The plugin odd was not fetched: its files cannot be written" in notes


@pytest.mark.usefixtures("repository")
def test_a_marketplace_over_http_has_the_plugins_of_repositories(tmp_path: Path) -> None:
    """Plugins in a folder beside the list are not available over HTTP."""
    web = Web(tmp_path / "elsewhere")
    with web.published() as url:
        other = {"source": "url", "url": f"{url}/git/tools/.git"}
        listing = marketplace(
            {"name": "all", "source": other, "skills": ["./skills"]},
            {"name": "beside", "source": "./plugins/beside"},
        )
        web.files["/marketplace.json"] = listing.encode()
        sources = built(tmp_path, type="marketplace", url=f"{url}/marketplace.json")
        found = refreshed(sources)
        names = ("pdf", "docx", "xlsx", "unlisted")
        assert found == {f"acme/all/{name}" for name in names}
        version = sources[0].content.version  # type: ignore[attr-defined]
        assert refreshed(sources) == found
        assert sources[0].content.version == version  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "source",
    [
        "../../outside",
        {"source": "url", "url": "ext::sh -c id"},
        {"source": "url", "url": "/etc"},
        {"source": "url", "url": "file:///etc"},
        {"source": "github", "repo": "--upload-pack=id/x"},
        {"source": "git-subdir", "url": "https://h/x", "path": "../up"},
        {"source": "url", "url": "https://h/x", "ref": "--evil"},
        {"source": {}},
        None,
    ],
)
def test_a_plugin_with_an_unsafe_source_is_left_out(
    repository: Repository, tmp_path: Path, source: object
) -> None:
    """It is reported, and the other plugins are read."""
    repository.commit(
        {
            LISTING: marketplace(
                {"name": "evil", "source": source},
                {"name": "good", "source": "./", "skills": ["./skills/pdf", "../../../etc"]},
            )
        }
    )
    sources = marketplace_of(repository, tmp_path)
    assert refreshed(sources) == {"acme/good/pdf"}
    assert "The plugin evil was left out" in str(sources[0].scan().problems)


def test_a_public_marketplace_cannot_name_repositories_of_a_private_network(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's machine may reach servers that the author of the marketplace cannot."""
    resolve_names(monkeypatch, private="git.internal")
    monkeypatch.setattr(urls, "is_public", lambda _host: True)  # makes this marketplace public
    other = {"source": "url", "url": "https://git.internal/x"}
    repository.commit({LISTING: marketplace({"name": "inside", "source": other})})
    sources = marketplace_of(repository, tmp_path)
    assert refreshed(sources) == set()
    assert "on a private network" in str(sources[0].scan().problems)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"plugins": 1}', '{"owner": {}}'])
def test_an_invalid_marketplace_is_an_error(
    repository: Repository, tmp_path: Path, text: str
) -> None:
    """The last content stays."""
    sources = marketplace_of(repository, tmp_path)
    before = refreshed(sources)
    repository.commit({LISTING: text})
    with pytest.raises(SourceError, match="is not a marketplace"):
        refreshed(sources)
    assert ids(sources) == before


def test_a_repository_with_a_single_plugin_is_read(tmp_path: Path) -> None:
    """It has a manifest of the plugin but no list."""
    made = Repository(tmp_path / "plugin")
    made.commit(
        {
            ".claude-plugin/plugin.json": '{"name": "solo", "description": "One plugin"}',
            "skills/pdf/SKILL.md": SKILL.format("pdf"),
        }
    )
    assert refreshed(marketplace_of(made, tmp_path)) == {"acme/solo/pdf"}


@pytest.mark.usefixtures("own_home")
def test_servers_of_plugins_need_trust_again_when_their_files_change(
    repository: Repository, tmp_path: Path
) -> None:
    """Trust covers the fetched files, so changed files of the plugin never run untrusted."""
    command = {"command": sys.executable, "args": ["${CLAUDE_PLUGIN_ROOT}/servers/run.py", "stdio"]}
    script = (SERVERS / "sdk.py").read_text("utf-8")
    plugin = {
        "name": "weather",
        "source": "./plugins/weather",
        "mcpServers": {"remote": {"type": "http", "url": "https://mcp.acme.example/mcp"}},
    }
    repository.commit(
        {
            LISTING: marketplace(plugin),
            "plugins/weather/.mcp.json": json.dumps({"mcpServers": {"weather": command}}),
            "plugins/weather/servers/run.py": script,
        }
    )
    project = tmp_path / "project"
    write(
        project / "repertory.toml",
        f'[[sources]]\ntype = "marketplace"\nname = "acme"\nurl = "{repository.path}"\n',
    )
    data = {"data_dir": str(tmp_path / "data"), "config": str(project / "repertory.toml")}

    def catalogue() -> dict[str, Source]:
        workspace = Workspace(load(data, project), project)
        return {source.name: source for source in workspace.catalogue().sources}

    catalogue()["acme"].refresh()
    found = catalogue()
    assert {"weather", "remote"} <= found.keys()
    assert not found["weather"].is_trusted
    with pytest.raises(SourceError, match="config trust"):
        found["weather"].scan()

    workspace = Workspace(load(data, project), project)
    workspace.trust.trust(Path(found["weather"].origin))
    trusted = catalogue()["weather"]
    assert all(item.id.startswith("weather__") for item in trusted.scan().items)
    assert trusted.scan().items

    touched = tmp_path / "touched"
    repository.commit({"plugins/weather/servers/run.py": f"open({str(touched)!r}, 'w')\n"})
    catalogue()["acme"].refresh()
    assert not catalogue()["weather"].is_trusted
    with pytest.raises(SourceError):
        trusted.scan()  # the trusted files no longer exist
    assert not touched.exists()


def test_servers_of_a_killed_fetch_are_removed(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their configuration was written before the content, and the marketplace was reset since."""
    remote = {"type": "http", "url": "https://mcp.acme.example/mcp"}
    plugin = {"name": "weather", "source": "./plugins/weather"}
    repository.commit({LISTING: marketplace(plugin), "plugins/weather/README.md": "Weather"})
    marketplace_of(repository, tmp_path)[0].refresh()
    repository.commit({LISTING: marketplace({**plugin, "mcpServers": {"remote": remote}})})
    with monkeypatch.context() as patch:
        patch.setattr(Content, "_switch", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            marketplace_of(repository, tmp_path)[0].refresh()
    repository.git("reset", "--quiet", "--hard", "HEAD~")
    marketplace_of(repository, tmp_path)[0].refresh()
    assert not servers_of(repository.path, tmp_path)


def test_a_server_without_a_program_needs_no_new_trust(
    repository: Repository, tmp_path: Path
) -> None:
    """The configuration of a remote server is the same when other files change."""
    remote = {"remote": {"type": "http", "url": "https://mcp.acme.example/mcp"}}
    plugin = {"name": "quality", "source": "./plugins/quality", "mcpServers": remote}
    repository.commit({LISTING: marketplace(plugin)})
    sources = marketplace_of(repository, tmp_path)
    refreshed(sources)
    assert servers_of(repository.path, tmp_path) == remote
    repository.commit({"plugins/quality/commands/more.md": REVIEW})
    refreshed(sources)
    assert servers_of(repository.path, tmp_path) == remote
    repository.commit({LISTING: marketplace({"name": "quality", "source": "./plugins/quality"})})
    refreshed(sources)
    assert servers_of(repository.path, tmp_path) == {}


def test_servers_of_too_many_plugins_are_refused(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each plugin has its own configuration of servers; the last content stays."""
    monkeypatch.setattr(servers, "MAX_CONFIGURATIONS", 2)
    remote = {"remote": {"type": "http", "url": "https://mcp.acme.example/mcp"}}
    plugins = [
        {"name": name, "source": "./plugins/quality", "mcpServers": remote} for name in "abc"
    ]
    repository.commit({LISTING: marketplace(*plugins[:2])})
    sources = marketplace_of(repository, tmp_path)
    found = refreshed(sources)
    repository.commit({LISTING: marketplace(*plugins)})
    with pytest.raises(SourceError, match="declares more than 2 configurations of servers"):
        refreshed(sources)
    assert ids(sources) == found


def test_only_the_first_plugin_of_a_name_is_used() -> None:
    """A note reports the second one."""
    plugins = [{"name": "pdf", "source": "./a"}, {"name": "pdf", "source": "./b"}]
    found = read_listing({"name": "acme", "plugins": plugins}, "acme")
    assert [plugin.where for plugin in found.plugins] == ["a"]
    assert found.notes == ("The plugin pdf is listed twice; the first was taken.",)


def test_a_listing_is_limited_and_validated() -> None:
    """Plugins without a valid name or source are reported; too many are an error."""
    plugins = [
        "pdf",
        {"name": "../x", "source": "./a"},
        {"name": 7},
        {"name": "b", "source": "./b"},
    ]
    found = read_listing({"name": "acme", "plugins": plugins}, "acme")
    assert [plugin.name for plugin in found.plugins] == ["b"]
    assert [note.rpartition(": ")[2] for note in found.notes] == [
        "it is not an object.",
        *["its name is not made of letters, digits, dots and hyphens."] * 2,
    ]
    with pytest.raises(SourceError, match="lists more than 2,000 plugins"):
        read_listing({"name": "acme", "plugins": plugins[-1:] * 2_001}, "acme")


def test_a_folder_that_many_plugins_name_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeated and differently spelt paths are read once, and each skill gets its own name."""
    for number in range(3):
        write(tmp_path / f"a{number}" / "s" / "SKILL.md", SKILL)
    listed: list[tuple[Path, str]] = []
    rglob = Path.rglob

    def below(folder: Path, pattern: str) -> Iterator[Path]:
        listed.append((folder, pattern))
        return rglob(folder, pattern)

    monkeypatch.setattr(Path, "rglob", below)
    collection = PluginCollector(tmp_path)
    named = {"skills": ["./", "a0", "././"] * 50, "commands": ["./"] * 50}
    for name in ("p", "q"):
        collection.add(Plugin(name=name, where="", fields=named), tmp_path)
    assert collection.ids["skills"] == {
        "a0/s/SKILL.md": "p/s",
        "a1/s/SKILL.md": "p/s-2",
        "a2/s/SKILL.md": "p/s-3",
    }
    assert len(listed) == len(set(listed)) <= 4
    stopped = PluginCollector(tmp_path, lambda: True)
    with pytest.raises(SourceError, match="interrupted"):
        stopped.add(Plugin(name="p", where="", fields=named), tmp_path)


def test_the_files_beside_many_servers_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One hash of the folder serves all servers of all its plugins."""
    root = write(tmp_path / "root" / "run.py", "run").parent
    read: list[object] = []
    digest = hashlib.file_digest

    def count(file: BufferedReader, name: str) -> object:
        read.append(file)
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", count)
    table = {f"s{number}": {"command": "python"} for number in range(20)}
    plugins = [Declared(name=name, root=root, servers=table) for name in ("p", "q")]
    servers.write_configurations(tmp_path / "content", plugins)
    assert len(servers.entries_of(tmp_path / "content")) == 2
    assert len(read) == 1
