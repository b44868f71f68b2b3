"""Generated catalogues and queries for property tests of the search, with and without vectors.

The vectors are word counts instead of a model's embeddings; the properties hold for any vectors.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.search.answer import Hit
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from tests.support.builders import skill, tool
from tests.support.hybrid_search import hybrid_engine
from tests.support.keyword_search import keyword_engine, row_of

Engine = Callable[[Iterable[Item]], SearchEngine]
BOTH_ARMS = pytest.mark.parametrize("engine", [keyword_engine, hybrid_engine])
few = settings(max_examples=25)

VERBS = ["create", "read", "list", "delete", "send", "run", "search", "update"]
THINGS = ["issue", "note", "file", "message", "cluster", "invoice", "git", "shell", "command"]
RARE = ["zorblax", "quuxly", "k8s", "gpt-4o", "vrendig", "LaTeX"]
FILLERS = ["the", "of", "all", "with", "for", "in", "new", "every"]
words = st.sampled_from([*VERBS, *THINGS, *RARE, *FILLERS])
phrases = st.lists(words, min_size=1, max_size=6).map(" ".join)
queries = phrases | st.tuples(phrases, phrases).map(", then ".join)


@st.composite
def items(draw: st.DrawFn, server: str = "") -> Item:
    """A tool or a skill whose texts consist of the words above."""
    name = f"{draw(st.sampled_from(VERBS))}_{draw(st.sampled_from(THINGS))}"
    if draw(st.booleans()):
        name += f"_{draw(st.sampled_from(THINGS))}"
    server = server or draw(st.sampled_from(["alpha", "beta", "shell"]))
    description = draw(phrases)
    if draw(st.booleans()):
        schema: dict[str, object] = {"properties": {draw(st.sampled_from(THINGS)): {}}}
        return tool(f"{server}__{name}", description, input_schema=schema)
    return Item(
        id=f"{server}/{name}",
        kind=Kind.SKILL,
        name=name,
        source=server,
        description=description,
        body=f"# {draw(phrases)}\n{draw(phrases)}\n",
        tags=(draw(words),),
    )


catalogues = st.lists(items(), min_size=1, max_size=10, unique_by=lambda item: item.id)

PROSE = [
    skill("paper", "Writes papers in LaTeX"),
    skill("site", "Builds pages with JavaScript"),
    skill("cells", "Loads AnnData files of single cells"),
    skill("pods", "Debugs k8s pods"),
    skill("models", "Compares gpt-4o with others"),
    skill("bread", "Bakes bread at home"),
]


def copied(item: Item, number: int) -> Item:
    """A copy of an item in another source."""
    return msgspec.structs.replace(item, id=f"copy{number}/{item.id}", source=f"copy{number}")


def search(engine: SearchEngine, text: str, limit: int = 10, threshold: float = 0.35) -> list[Hit]:
    """The hits of a search."""
    return engine.search(Query(text=text, limit=limit, threshold=threshold)).hits


def names(hits: Sequence[Hit]) -> list[str]:
    """The names of hits."""
    return [hit.name for hit in hits]


def first_confidences(engine: SearchEngine, text: str, of: Sequence[Item]) -> list[float]:
    """The confidences of some items, even if a search would not show them."""
    rows = [row_of(engine.keywords, item.id) for item in of]
    task = engine.rank(Query(text=text), also=rows)
    return [task.merged.confidence[row] for row in rows]


def spellings(parts: Sequence[str]) -> list[str]:
    """An identifier of some words in all usual notations, such as snake case and camel case."""
    camel = parts[0] + "".join(map(str.title, parts[1:]))
    joined = [
        "_".join(parts),
        "-".join(parts),
        " ".join(parts),
        camel,
        camel[:1].upper() + camel[1:],
    ]
    return [*joined, *(one.upper() for one in joined[:3]), "-".join(map(str.title, parts))]
