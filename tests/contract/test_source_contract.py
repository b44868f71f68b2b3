"""The contract of ``Source``, tested on every adapter."""

import json
import shutil
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from repertory.errors import CallError, CallsOffError, SourceError
from repertory.sources.configured import Unreadable
from repertory.sources.marketplace.listing import LISTING
from repertory.sources.registry import TYPES, build
from repertory.sources.source import Source
from tests.support.builders import write
from tests.support.bulletin_source import BOARDS, TYPE, registered
from tests.support.elsewhere import Repository, built, marketplace, refreshed, skills, zipped
from tests.support.mcp_servers import SERVERS
from tests.support.source_cases import CASES, Case

SERVER = SERVERS / "raw.py"
TIMEOUT_S = 60


class Adapter(msgspec.Struct, frozen=True):
    """One adapter, and how a test changes the folder that it reads.

    Attributes:
        name: The name in the test's id.
        make: Builds the source of a folder; two sources of one folder are equal.
        add: Adds one item to the folder; None if the items are fixed.
        spoil: Makes the folder unreadable; None if that is impossible.
        is_readable: Whether the source can be scanned at all.
    """

    name: str
    make: Callable[[Path], Source]
    add: Callable[[Path], None] | None = None
    spoil: Callable[[Path], None] | None = None
    is_readable: bool = True


def _only(source_list: list[Source]) -> Source:
    [source] = source_list
    return source


def _of_files(case: Case) -> Adapter:
    return Adapter(
        name=" with ".join([case.type, *case.options]),
        make=lambda folder: case.source(folder / "root"),
        add=lambda folder: _add_file(case, folder / "root"),
        spoil=lambda folder: shutil.rmtree(folder / "root"),
    )


def _add_file(case: Case, root: Path) -> None:
    number = sum(path.is_file() for path in root.rglob("*"))
    case.fill(root, range(number, number + 1))


def _add_tool(folder: Path) -> None:
    """Add a tool to a single tool file."""
    file = folder / "tools.json"
    tools = json.loads(file.read_text())["tools"] if file.exists() else []
    tool = {"name": f"t{len(tools)}", "inputSchema": {"type": "object"}}
    file.write_text(json.dumps({"server": "lab", "tools": [*tools, tool]}))


def _add_row(folder: Path) -> None:
    """Add an item to a corpus."""
    with (folder / "corpus.jsonl").open("a+") as file:
        file.seek(0)
        number = len(file.readlines())
        file.write(json.dumps({"id": f"i{number}", "kind": "skill", "name": f"i{number}"}) + "\n")


def _add_operation(folder: Path) -> None:
    """Add an operation to an OpenAPI document."""
    file = folder / "openapi.json"
    paths = json.loads(file.read_text())["paths"] if file.exists() else {}
    paths |= {f"/o{len(paths)}": {"get": {}}}
    file.write_text(json.dumps({"openapi": "3.1.0", "paths": paths}))


def _pinned(folder: Path) -> Source:
    """A server of an MCP registry that was not fetched."""
    entry = {"server": "io.github.acme/a", "version": "1.0.0", "package": "npm"}
    return _build(folder, type="mcp-registry", name="a", store=str(folder / "store"), **entry)


def _server(folder: Path, *, trusted: bool = True) -> Source:
    """A real server over stdio, whose tools are the lines of a file."""
    server = {
        "command": sys.executable,
        "args": [str(SERVER), "reporting"],
        "env": {"TOOLS": str(folder / "tools"), "STARTS": str(folder / "starts")},
    }
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"lab": server}}))
    return _only(build({"type": "mcp", "config": "mcp.json", "trusted": trusted}, folder))


def _offer(folder: Path) -> None:
    """Add a tool to the server."""
    file = folder / "tools"
    names = file.read_text().split() if file.exists() else []
    half = folder / "tools.half"
    half.write_text("\n".join([*names, f"t{len(names)}"]))
    half.replace(file)


def _post(_: Path) -> None:
    board = BOARDS["board"]
    board.post(*(str(number) for number in range(len(board.read()) + 1)))


def _close(_: Path) -> None:
    BOARDS["board"].is_closed = True


def _build(folder: Path, **entry: object) -> Source:
    return _only(build(entry, folder))


def _commit(folder: Path, kind: str) -> None:
    """Add a skill to a repository with a marketplace, and fetch it."""
    repository = Repository(folder / "repository")
    write(repository.path / LISTING, marketplace({"name": "p", "source": "./"}))
    repository.add_skills(f"s{len(list(repository.path.glob('skills/*')))}")
    refreshed(built(folder, type=kind, url=str(repository.path)))


def _archive(folder: Path) -> None:
    """Publish an archive with another skill, and fetch it."""
    number = len(list(folder.glob("of-*")))
    (folder / f"of-{number}").touch()
    (folder / "a.zip").write_bytes(zipped(skills(*(f"s{n}" for n in range(number + 1)))))
    refreshed(built(folder, type="archive", path="a.zip"))


def _fetched(name: str, add: Callable[[Path], None], **entry: object) -> Adapter:
    """A source whose content is fetched, as if by another process."""
    return Adapter(
        name,
        make=lambda folder: built(
            folder, **{key: str(one).format(folder) for key, one in entry.items()}
        )[0],
        add=add,
        spoil=lambda folder: shutil.rmtree(folder / "store"),
    )


ADAPTERS = [
    *map(_of_files, CASES),
    Adapter(
        "tools in one file",
        make=partial(_build, type="tools", path="tools.json"),
        add=_add_tool,
        spoil=lambda folder: (folder / "tools.json").unlink(),
    ),
    Adapter(
        "openapi",
        make=partial(
            _build, type="openapi", name="o", path="openapi.json", server="http://localhost"
        ),
        add=_add_operation,
        spoil=lambda folder: (folder / "openapi.json").unlink(),
    ),
    Adapter("mcp-registry", make=_pinned, is_readable=False),
    Adapter(
        "corpus",
        make=partial(_build, type="corpus", path="corpus.jsonl"),
        add=_add_row,
        spoil=lambda folder: (folder / "corpus.jsonl").unlink(),
    ),
    Adapter(
        "builtin-skills",
        make=partial(_build, type="builtin-skills", skills={"b": "Does b.", "a": "Does a."}),
    ),
    Adapter("mcp", make=_server, add=_offer, spoil=lambda folder: (folder / "tools").unlink()),
    Adapter("mcp without trust", make=partial(_server, trusted=False), is_readable=False),
    Adapter(
        "unreadable",
        make=lambda _: Unreadable("lab", {"type": "mcp", "name": "lab"}, "It is half saved."),
        is_readable=False,
    ),
    _fetched("git", partial(_commit, kind="git"), type="git", url="{0}/repository"),
    _fetched(
        "marketplace",
        partial(_commit, kind="marketplace"),
        type="marketplace",
        url="{0}/repository",
    ),
    _fetched("archive", _archive, type="archive", path="a.zip"),
    Adapter("a type of one's own", partial(_build, type=TYPE, name="board"), _post, _close),
]
READABLE = [adapter for adapter in ADAPTERS if adapter.is_readable]
CHANGING = [adapter for adapter in ADAPTERS if adapter.add]
FAILING = [adapter for adapter in ADAPTERS if adapter.spoil or not adapter.is_readable]


def on(adapters: list[Adapter]) -> pytest.MarkDecorator:
    """Run a test on these adapters."""
    return pytest.mark.parametrize("adapter", adapters, ids=lambda adapter: adapter.name)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the adapter, and an empty board."""
    registered(monkeypatch, "board")
    return tmp_path


def filled(adapter: Adapter, place: Path) -> Source:
    """The adapter's source, with at least one item if items can be added."""
    if adapter.add:
        adapter.add(place)
    return adapter.make(place)


def ids(source: Source) -> list[str]:
    """The ids that a scan finds."""
    return [item.id for item in source.scan().items]


@on(ADAPTERS)
def test_a_source_has_a_type_a_name_and_a_location(adapter: Adapter, place: Path) -> None:
    """Any source has a registered type, a name and a location, also if it cannot be scanned."""
    source = adapter.make(place)
    assert source.type in {*TYPES, TYPE}
    assert source.name
    assert isinstance(source.location, str)


@on(ADAPTERS)
def test_identity_is_plain_json_and_stable(adapter: Adapter, place: Path) -> None:
    """The identity does not change with the items."""
    source = adapter.make(place)
    before = json.dumps(source.identity(), sort_keys=True)
    if adapter.add:
        adapter.add(place)
    assert json.dumps(adapter.make(place).identity(), sort_keys=True) == before


@on(ADAPTERS)
def test_equal_configurations_make_equal_sources(adapter: Adapter, place: Path) -> None:
    """Equal sources let a reloaded configuration keep the source that has state."""
    source = adapter.make(place)
    assert source == adapter.make(place)
    assert hash(source) == hash(adapter.make(place))
    assert source != Unreadable(source.name, source.identity(), "another")


@on(READABLE)
def test_scans_are_deterministic(adapter: Adapter, place: Path) -> None:
    """The same source and a new one find the same items, each with a unique id."""
    source = filled(adapter, place)
    scan = source.scan()
    assert scan.items
    assert scan == source.scan() == adapter.make(place).scan()
    assert len({item.id for item in scan.items}) == len(scan.items)
    assert {item.source for item in scan.items} == {source.name}
    assert not source.is_away()


@on(CHANGING)
def test_a_scan_finds_added_items(adapter: Adapter, place: Path) -> None:
    """A scan of the same source also finds items that were added later."""
    source = filled(adapter, place)
    before = ids(source)
    assert adapter.add
    adapter.add(place)
    assert set(before) < set(ids(source))


@on(FAILING)
def test_a_failure_is_an_error_and_never_an_empty_scan(adapter: Adapter, place: Path) -> None:
    """A scan of an unreadable source raises, and its identity stays the same."""
    source = filled(adapter, place)
    identity = source.identity()
    if adapter.spoil:
        assert ids(source)
        adapter.spoil(place)
    with pytest.raises(SourceError):
        source.scan()
    assert source.identity() == identity


@on(ADAPTERS)
def test_only_a_source_that_needs_trust_can_lack_it(adapter: Adapter, place: Path) -> None:
    """An untrusted source cannot be scanned, watched or called, and starts no process."""
    source = filled(adapter, place)
    assert source.is_trusted or source.needs_trust
    if not source.is_trusted:
        with pytest.raises(SourceError, match="trust"):
            source.scan()
        with pytest.raises(CallsOffError, match="trust"):
            source.to_call("t0")
        assert source.watch(lambda: None, 1) is None
        assert not (place / "starts").exists()


@on(CHANGING)
def test_changes_are_reported(adapter: Adapter, place: Path) -> None:
    """Changes are reported by events of the source's folder or by its own watch."""
    source = filled(adapter, place)
    assert adapter.add
    if source.folder is not None:
        path = source.folder.path
        assert path.exists()
        changed = [path] if path.is_file() else [Path(one.path) for one in source.scan().items]
        assert all(source.folder.concerns(file.name) for file in changed)
        assert source.watch(lambda: None, 1) is None
        return
    reported = threading.Event()
    stop = source.watch(reported.set, 60)
    assert stop
    try:
        assert reported.wait(TIMEOUT_S)
        before = ids(source)
        reported.clear()
        adapter.add(place)
        assert reported.wait(TIMEOUT_S)
        assert set(before) < set(ids(source))
    finally:
        stop()
    reported.clear()
    adapter.add(place)
    assert set(before) < set(ids(source))
    assert not reported.is_set()


@on(ADAPTERS)
def test_only_servers_have_tools_to_call(adapter: Adapter, place: Path) -> None:
    """Only MCP and OpenAPI sources return a server to call; an unreadable one says why not."""
    source = adapter.make(place)
    if isinstance(source, Unreadable):
        with pytest.raises(CallError, match="half saved"):
            source.to_call("t0")
    elif source.is_trusted:
        server = source.to_call("t0")
        assert (server is not None) == (source.type in {"mcp", "openapi"})


@on(list(map(_of_files, CASES)))
def test_a_missing_folder_is_unavailable(adapter: Adapter, place: Path) -> None:
    """A source whose folder is missing is away, as the disk may not be mounted."""
    source = filled(adapter, place)
    assert adapter.spoil
    adapter.spoil(place)
    assert source.is_away()


def test_every_registered_type_is_in_this_suite() -> None:
    """Every type of source must have an adapter here."""
    assert set(TYPES) <= {adapter.name.split(" with ")[0] for adapter in ADAPTERS}
