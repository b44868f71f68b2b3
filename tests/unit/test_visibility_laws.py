"""Laws of visibility: a caller gets the answers of a catalogue without the hidden items."""

import msgspec
import pytest
from hypothesis import example, given

from repertory.catalogue.item import Item
from repertory.errors import RepertoryError
from repertory.index.vectors import Filter
from repertory.indexing.item_problems import problems_between
from repertory.search import filters, lookup
from repertory.search.engine import SearchEngine
from repertory.search.explain import explain
from repertory.search.query import Query
from tests.support.builders import skill, tool
from tests.support.hybrid_search import hybrid_engine
from tests.support.search_laws import BOTH_ARMS, Engine, few, queries
from tests.support.visibility import crowded, hidden, is_hidden, seen

NOTE = tool("notes__add_note", "Write down a note")
SHELL = tool("shell__run_command", "Run a command", input_schema={"properties": {"command": {}}})


def answers(engine: SearchEngine, text: str) -> list[object]:
    """The answers to a query, with and without a threshold, filters and names."""
    wheres = (
        Filter(),
        Filter(kinds=("tool",)),
        Filter(sources=("alpha", "secret-alpha")),
        Filter(sources=("secret-alpha",)),
        Filter(servers=("alpha", "secret-beta")),
        Filter(tags=("git",)),
    )
    asked = [
        Query(text=text, threshold=threshold, limit=limit, where=where)
        for where in wheres
        for threshold, limit in ((0.0, 100), (0.35, 5))
    ]
    return [engine.search(query) for query in asked]


def explained(engine: SearchEngine, text: str, item: str) -> object:
    """An explanation, or the error."""
    try:
        return explain(engine, Query(text=text), item)
    except RepertoryError as error:
        return type(error), str(error)


def looked_up(engine: SearchEngine, item: str) -> object:
    """An item, or the error."""
    try:
        return lookup.item(engine, item)
    except RepertoryError as error:
        return type(error), str(error)


def checked(engine: SearchEngine, where: Filter) -> str:
    """The error for a filter; empty if the filter is valid."""
    try:
        filters.checked(where, engine.keywords, lambda: ())
    except RepertoryError as error:
        return str(error)
    return ""


@BOTH_ARMS
@few
@given(catalogue=crowded(), text=queries)
@example(  # a hidden copy would be the hit, and the visible one its duplicate
    catalogue=[NOTE, *(hidden(NOTE, number) for number in range(70))], text="add_note"
)
@example(  # a hidden pin would take the place of the hit
    catalogue=[NOTE, hidden(skill("ship", "Ship it", pin=("ship it",), is_vouched=True))],
    text="ship it now",
)
@example(  # a hidden hit would be good enough to prevent inference
    catalogue=[SHELL, hidden(skill("git", "Commit all my changes to git"))],
    text="commit all my changes to git",
)
@example(  # a hidden successor would replace its predecessor
    catalogue=[
        skill("roses", "Grows roses", deprecated_by="new-roses"),
        hidden(skill("new-roses", "Cuts them")),
    ],
    text="grows roses",
)
@example(  # a hidden word would be a correction of a misspelt one
    catalogue=[skill("pods", "Debugs zorblaxes"), hidden(skill("zorblux", "Of zorblux"))],
    text="zorblix",
)
@example(  # a word of a hidden item, in a segment with a visible item, would be the only match
    catalogue=[skill("pods", "Debugs zorblat"), NOTE, hidden(skill("other", "Of zorblanz"))],
    text="zorblans",
)
def test_every_answer_equals_that_of_a_catalogue_without_the_hidden_items(
    engine: Engine, catalogue: list[Item], text: str
) -> None:
    """Answers, explanations, look-ups, lists, problems and error messages are equal."""
    subset = seen(engine(catalogue), catalogue)
    visible = [item for item in catalogue if not is_hidden(item)]
    lacking = seen(engine(visible), visible)
    assert answers(subset, text) == answers(lacking, text)
    for item in (*visible[:2], *[item for item in catalogue if is_hidden(item)][:2]):
        for name in (item.id, item.name):
            assert explained(subset, text, name) == explained(lacking, text, name)
        assert checked(subset, Filter(sources=(item.source,))) == checked(
            lacking, Filter(sources=(item.source,))
        )
        assert checked(subset, Filter(tags=("zq",), servers=(item.server or "zq",))) == checked(
            lacking, Filter(tags=("zq",), servers=(item.server or "zq",))
        )
        if subset.collection is not None:
            assert looked_up(subset, item.id) == looked_up(lacking, item.id)
    assert lookup.entries(subset.keywords, Filter()) == lookup.entries(lacking.keywords, Filter())
    between = [
        problems_between([*one.keywords.all()], ["alpha", "beta"], are_all=True)
        for one in (subset, lacking)
    ]
    assert between[0] == between[1]


@BOTH_ARMS
def test_hidden_items_take_no_places_of_candidates(engine: Engine) -> None:
    """Each arm has few candidates, so removing hidden hits afterwards would leave nothing."""
    crowd = [
        hidden(tool(f"vault__read_secret_{number}", "Read a secret of the vault"), number)
        for number in range(200)
    ]
    far = skill("secrets", "Says where each secret is kept, of the vault and elsewhere")
    catalogue = [far, *crowd]
    query = Query(text="read a secret of the vault", threshold=0.0)
    everything = engine(catalogue)
    assert far.id not in {hit.id for hit in everything.search(query).hits}
    assert [hit.id for hit in seen(everything, catalogue).search(query).hits] == [far.id]


def test_an_item_of_an_unknown_source_is_hidden() -> None:
    """Its source's configuration may not be known yet."""
    catalogue = [NOTE, SHELL]
    subset = seen(hybrid_engine(catalogue), [NOTE])
    assert [hit.id for hit in subset.search(Query(text="note command", threshold=0.0)).hits] == [
        NOTE.id
    ]
    assert subset.items([NOTE.id, SHELL.id]).keys() == {NOTE.id}
    assert subset.hides


def test_an_item_that_is_not_yet_in_the_keyword_index_is_hidden() -> None:
    """It may belong to a new source that is not visible to everyone."""
    whole = hybrid_engine([NOTE, SHELL])
    late = whole.over(
        whole.keywords.updated([SHELL.id], ()),
        whole.collection,
        precedence=(),
        stale=(),
        notices=(),
        hides=False,
    )
    subset = seen(late, [NOTE])
    assert not subset.hides
    assert late.items([SHELL.id])
    assert not subset.items([SHELL.id])


@pytest.mark.parametrize("text", ["note", "command"])
def test_a_subset_that_hides_nothing_uses_the_whole_index(text: str) -> None:
    """It shares the keyword index and gives the same answers."""
    engine = hybrid_engine([NOTE, SHELL])
    subset = seen(engine, [NOTE, SHELL])
    assert subset.keywords is engine.keywords
    assert not subset.hides
    query = Query(text=text, threshold=0.0)
    assert subset.search(query) == msgspec.structs.replace(engine.search(query), notices=())
