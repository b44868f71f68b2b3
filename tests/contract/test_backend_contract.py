"""The contract of ``Backend``: one-shot, in a server, over HTTP, and with failover."""

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from repertory.backend import Backend
from repertory.catalogue.item import Item, Kind
from repertory.errors import (
    ArgumentsError,
    CallsOffError,
    RepertoryError,
    UnknownItemError,
    UsageError,
)
from repertory.index.vectors import Filter
from repertory.local.one_shot import Repertory
from repertory.project_search.query import ProjectQuery
from repertory.remote.client import Client
from repertory.search.links import Links
from repertory.search.query import Query
from repertory_embedded.failover import Failover
from repertory_query.backend.caller_view import Restricted
from tests.support.builders import write_skill
from tests.support.listening import served
from tests.support.mcp_servers import started
from tests.support.query_service import RunningService, settings_of
from tests.support.skill_files import ADD, AREA, AREA_FILE, write

ADAPTERS = ["one shot", "service", "restricted", "client", "failover"]
TYPED = Query(text="rotate keyz", threshold=0.0, limit=9)


def make_project(folder: Path, url: str) -> Path:
    """A project with skills, documents, skill files and the MCP server at a URL."""
    write_skill(folder, "key-rotation", "Rotate API keys without downtime")
    notes = "Count with mcp__desk__add, then mcp__desk__send. See references/form.md.\n"
    write_skill(folder, "release-notes", "Write release notes from merged pull requests", notes)
    write(folder, "skills/release-notes/references/form.md", "Grüße")
    write_skill(folder, "post-mortem?", "Write up an incident: timeline, causes, actions")
    write(folder, "README.md", "# Shop\n\nThe web shop and its checkout.\n")
    write(folder, AREA_FILE, AREA)
    write(folder, "library/helpers.ns.txt", ADD)
    write(folder, "mcp.json", json.dumps({"mcpServers": {"desk": {"url": url}}}))
    return folder


@contextmanager
def failover(url: str, project: Path, **flags: object) -> Iterator[Failover]:
    """A failover backend that uses the server at a URL."""
    settings = settings_of(project, server_url=url, **flags)
    backend, stopping = Failover(settings, project), list[int]()
    thread = threading.Thread(target=backend.run, args=(stopping,))
    thread.start()
    try:
        yield backend
    finally:
        stopping.append(15)
        thread.join()


@contextmanager
def opened(adapter: str, root: Path, callee: str, *, calls: bool) -> Iterator[Backend]:
    """One adapter on an indexed project with the MCP server at ``callee``."""
    project = make_project(root / "project", callee)
    flags = {"mcp_config": [str(project / "mcp.json")], "allow_calls": calls}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root / "home"))
        if adapter == "one shot":
            with Repertory(settings_of(project, **flags), project) as backend:
                backend.index()
                yield backend
            return
        with RunningService(project, **flags) as running:
            running.scan()
            if adapter in ("service", "restricted"):
                yield running.service if adapter == "service" else Restricted(running.service)
                return
            with served(running, **flags) as url:
                if adapter == "client":
                    yield Client(url)
                    return
                with failover(url, project, **flags) as backend:
                    yield backend


@pytest.fixture(scope="module")
def callee() -> Iterator[str]:
    """The URL of an MCP server that all projects share."""
    with started("callee.py", "http") as url:
        yield url


@pytest.fixture(scope="module", params=ADAPTERS)
def backend(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, callee: str
) -> Iterator[Backend]:
    """Each adapter in turn, without calls."""
    root = tmp_path_factory.mktemp("backend")
    with opened(request.param, root, callee, calls=False) as backend:
        yield backend


@pytest.fixture(scope="module", params=ADAPTERS)
def calling(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, callee: str
) -> Iterator[Backend]:
    """Each adapter in turn, with calls; closing it twice is allowed."""
    root = tmp_path_factory.mktemp("calling")
    with opened(request.param, root, callee, calls=True) as backend:
        yield backend
        backend.close()
        backend.close()


def test_a_search_finds_the_best_first(backend: Backend) -> None:
    """An answer has hits with evidence, and echoes its query."""
    answer = backend.search(Query(text="rotate API keys", limit=1))
    (hit,) = answer.hits
    assert hit.id == "project/key-rotation"
    assert 0 < hit.confidence <= 1
    assert hit.reason
    assert answer.query == "rotate API keys"
    assert answer.items == backend.stats().items
    assert not answer.degraded


def test_a_long_query_is_searched(backend: Backend) -> None:
    """A long query is found; clients send it in a body, as proxies limit the length of URLs."""
    short = Query(text="rotate API keys", where=Filter(kinds=("skill",)), threshold=0.0)
    long = msgspec.structs.replace(short, text=short.text + " 很" * 1_000)
    assert [hit.id for hit in backend.search(long).hits][:1] == ["project/key-rotation"]
    assert {hit.kind for hit in backend.search(long).hits} == {Kind.SKILL}


@pytest.mark.parametrize(
    ("where", "kinds"),
    [
        (Filter(kinds=("skill",)), {Kind.SKILL}),
        (Filter(kinds=("skill", "tool"), sources=("desk",)), {Kind.TOOL}),
        (Filter(servers=("desk",)), {Kind.TOOL}),
    ],
)
def test_searches_and_lists_are_filtered(backend: Backend, where: Filter, kinds: set[Kind]) -> None:
    """Searches and lists return only items that pass a filter."""
    listed = backend.entries(where)
    assert {entry.kind for entry in listed} == kinds
    answer = backend.search(Query(text="write draw add", limit=50, threshold=0.0, where=where))
    assert {hit.id for hit in answer.hits} <= {entry.id for entry in listed}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (Filter(sources=("desk", "dosk")), "There is no source 'dosk'; available: desk"),
        (Filter(servers=("nowhere",)), "There is no server 'nowhere'; available: "),
        (Filter(tags=("nothing",)), "There is no tag 'nothing'; "),
    ],
)
def test_an_unknown_value_of_a_filter_is_a_usage_error(
    backend: Backend, where: Filter, message: str
) -> None:
    """The message lists the known values, the closest first."""
    for ask in (
        lambda: backend.entries(where),
        lambda: backend.search(Query(text="write", where=where)),
        lambda: backend.explain(Query(text="write", where=where), "project/key-rotation"),
    ):
        with pytest.raises(UsageError, match=message):
            ask()


def test_an_invalid_query_is_a_usage_error(backend: Backend) -> None:
    """An empty query and a limit out of range are refused with a sentence."""
    for query in (Query(text="keys", limit=0), Query(text="  ")):
        with pytest.raises(UsageError, match=r"[.]$"):
            backend.search(query)


def test_an_explanation_agrees_with_the_search(backend: Backend) -> None:
    """An item is explained by its id or its name, as the search shows it."""
    shown = backend.explain(TYPED, "project/key-rotation")
    assert shown.shown
    assert shown.hit in backend.search(TYPED).hits
    assert backend.explain(TYPED, "key-rotation") == shown
    hidden = backend.explain(Query(text="rotate API keys", limit=1), "documents/README.md")
    assert not hidden.shown


def test_entries_are_listed_by_id(backend: Backend) -> None:
    """All items that the statistics count are listed, ordered by id."""
    ids = [entry.id for entry in backend.entries()]
    assert ids == sorted(ids)
    assert len(ids) == backend.stats().items
    assert {"project/key-rotation", "documents/README.md"} <= set(ids)


@pytest.mark.parametrize("where", [Filter(), Filter(kinds=("skill", "tool"))])
def test_pages_are_parts_of_the_list(backend: Backend, where: Filter) -> None:
    """A page starts at an offset or after an id, which need not exist."""
    ids = [entry.id for entry in backend.entries(where)]
    for size in (1, 2, len(ids)):
        pages = [backend.page(where, size, offset) for offset in range(0, len(ids), size)]
        assert [entry.id for page, _ in pages for entry in page] == ids
        assert {total for _, total in pages} == {len(ids)}
    assert [one.id for one in backend.page(where, 99, after=ids[0])[0]] == ids[1:]
    assert [one.id for one in backend.page(where, 99, 1, after=ids[0] + "!")[0]] == ids[2:]
    assert backend.page(where, 9, after=ids[-1]) == ([], len(ids))


def test_the_contents_are_counted(backend: Backend) -> None:
    """The contents are counts by kind and source, with the setting of calls and a skill hash."""
    found = backend.contents()
    counts = Counter((entry.kind.value, entry.source) for entry in backend.entries())
    counted = {
        (kind, source): n for kind, some in found.kinds.items() for source, n in some.items()
    }
    assert counted == counts
    assert found.calls_allowed == backend.calls_allowed
    assert found.skills == backend.contents().skills != f"{0:016x}"


def test_items_are_read_alone_and_in_batches(backend: Backend) -> None:
    """Items are read alone or in batches with any ids; a batch leaves out unknown ids."""
    ids = [entry.id for entry in backend.entries()]
    found = backend.items([*ids, "no/such", "no/such"])
    assert set(found) == set(ids)
    assert found == {one: backend.item(one) for one in ids}
    assert all(isinstance(item, Item) for item in found.values())
    assert found["project/post-mortem?"].body.strip() == "Steps follow."
    assert backend.items([]) == {}


def test_an_item_is_found_by_its_unique_name(backend: Backend) -> None:
    """An item is found by its id or any spelling of its unique name."""
    for name in ("key-rotation", "Key rotation", "project/key-rotation"):
        assert backend.item(name).id == "project/key-rotation"
    assert backend.item("add").id == "desk__add"


@pytest.mark.parametrize("item", ["project/key-rotaton", "key-rotaton"])
def test_an_unknown_item_is_an_error(backend: Backend, item: str) -> None:
    """An error of an unknown item suggests similar ids."""
    with pytest.raises(UnknownItemError, match="did you mean project/key-rotation"):
        backend.item(item)
    with pytest.raises(UnknownItemError, match="did you mean project/key-rotation"):
        backend.explain(TYPED, item)


def test_skills_and_tools_are_linked(backend: Backend) -> None:
    """Links are read from skills and tools, and in explanations; an unknown item is an error."""
    needing = Links(needs=("desk__add",), missing=("mcp__desk__send",))
    assert backend.links("project/release-notes") == needing
    assert backend.explain(TYPED, "release-notes").links == needing
    needed = Links(needed_by=("project/release-notes",))
    assert backend.links("desk__add") == needed
    assert backend.explain(TYPED, "desk__add").links == needed
    assert backend.links("documents/README.md") == Links()
    with pytest.raises(UnknownItemError, match="did you mean project/key-rotation"):
        backend.links("project/key-rotaton")


def test_a_skill_has_files(backend: Backend) -> None:
    """Files are listed by skill and read one by one; an unknown file is an error."""
    content, place = "Grüße".encode(), "references/form.md"
    ids = ["project/release-notes", "project/key-rotation", "desk__add", "no/such"]
    found = backend.skill_files(ids)
    assert set(found) == set(ids[:3])
    (file,) = found[ids[0]].files
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert (file.place, file.digest, file.size) == (place, digest, len(content))
    assert not any(found[one].files or found[one].withheld for one in ids[1:3])
    assert backend.skill_file(ids[0], place) == content
    for item, other in ((ids[0], "SKILL.md"), (ids[0], "../x"), (ids[1], place), ("no", place)):
        with pytest.raises(UnknownItemError):
            backend.skill_file(item, other)


def test_skill_files_are_found_by_cosine(backend: Backend) -> None:
    """A stored vector of a skill file is found; a path outside the sandbox is refused."""
    backend.update_vector(AREA_FILE)
    paths = [match.path for match in backend.similar_skills("calculate rectangle area")]
    assert paths[0] == AREA_FILE
    with pytest.raises(RepertoryError):
        backend.update_vector("../outside.ns.txt")


def test_the_project_is_searched(backend: Backend) -> None:
    """Files of the project that contain a text are found; an empty text is refused."""
    answer = backend.search_project(ProjectQuery(search_query="checkout"))
    assert answer.success
    assert answer.total_results == 1
    assert "README.md" in answer.content
    with pytest.raises(UsageError):
        backend.search_project(ProjectQuery(search_query=" "))


def test_calls_are_off_by_default(backend: Backend) -> None:
    """A call is refused with a message that names the flag."""
    assert not backend.calls_allowed
    assert not backend.stats().calls_allowed
    with pytest.raises(CallsOffError, match="--allow-calls"):
        backend.call("desk__add", {"first": 1, "second": 2})


def test_a_call_returns_the_result(calling: Backend) -> None:
    """A tool is called by its id; a name, an unknown id and wrong arguments are errors."""
    assert calling.calls_allowed
    result = calling.call("desk__add", {"first": 1, "second": 2})
    assert result.structured_content == {"result": 3}
    with pytest.raises(ArgumentsError):
        calling.call("desk__add", {"first": "one"})
    with pytest.raises(UnknownItemError):
        calling.call("desk__subtract", {})
    with pytest.raises(UnknownItemError, match="did you mean desk__add"):
        calling.call("add", {"first": 1, "second": 2})


def test_statistics_count_the_sources(backend: Backend) -> None:
    """Items are counted in total and by source; no build or job is pending."""
    stats = backend.stats()
    items = {source.name: source.items for source in stats.sources}
    assert items["project"] == 3
    assert items["documents"] >= 1
    assert sum(items.values()) == stats.items == sum(stats.kinds.values())
    assert stats.building is None
    assert (stats.queue.saves, stats.queue.builds, stats.queue.failed) == (0, 0, 0)
    assert stats.collection
    assert stats.model
    assert not stats.missing


def test_indexing_again_changes_nothing(backend: Backend) -> None:
    """Indexing again changes nothing."""
    before = backend.stats()
    backend.ensure_indexed()
    after = backend.refresh()
    assert (after.items, after.collection) == (before.items, before.collection)


def test_the_gateway_is_a_url(backend: Backend) -> None:
    """The gateway is the URL at which generated TypeScript calls tools."""
    assert backend.gateway.startswith("http://")
