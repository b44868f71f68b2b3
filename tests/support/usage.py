"""Answers and recorded searches for tests of the usage report."""

from repertory.catalogue.item import Kind
from repertory.search.answer import Answer, Evidence, Hit, Mode
from repertory.usage.events import Search, search_of

NOW = 1_800_000_000.0
SECRET = b"the same for all searches"


def answer(query: str, *found: str) -> Answer:
    """An answer whose hits have the given ids."""
    hits = [
        Hit(
            id=item,
            server="",
            name=item,
            confidence=0.9,
            reason="",
            description="",
            kind=Kind.TOOL,
            source="s",
            path="",
            tags=(),
            evidence=Evidence(),
        )
        for item in found
    ]
    return Answer(query=query, hits=hits, threshold=0.35, mode=Mode.HYBRID)


def search(
    query: str, *found: str, ago: float = 3_600.0, caller: str = "key:ci", ms: float = 5.0
) -> Search:
    """A recorded search with its query, ``ago`` seconds before ``NOW``."""
    return search_of(
        answer(query, *found),
        NOW - ago,
        caller,
        ms / 1_000,
        SECRET,
        has_query=True,
        continues=False,
    )
