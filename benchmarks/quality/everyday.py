"""A list of everyday queries, written by hand before any result was seen."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.quality.product import Product, hits
from benchmarks.quality.report import Part, percent, table
from repertory_eval.measure import Found

QUERIES = Path(__file__).with_name("everyday.jsonl")
SHOWN = 5
FIRST_RELEASE = (77.6, 82.7, 91.7)  # at commit e8e8fda

TEXT = """{count} everyday queries with the items that one would be glad to see, written by hand
before any result was seen ([everyday.jsonl](quality/everyday.jsonl)), in the catalogue of all real
items, with the default threshold and {shown} results. {empty} of them have no answer there and
should show nothing."""


class Everyday(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query, and the ids of the items expected; empty if nothing should be shown."""

    text: str
    expected: frozenset[str]


def part(product: Product, project: Path) -> Part:
    """The figures, and the queries that fail.

    Args:
        product: The product.
        project: The catalogue of real items.
    """
    queries = [
        msgspec.json.decode(line, type=Everyday)
        for line in QUERIES.read_bytes().splitlines()
        if line.strip()
    ]
    with product.opened(project) as repertory:
        known = {entry.id for entry in repertory.entries()}
        if unknown := {item for query in queries for item in query.expected} - known:
            raise SystemExit(f"{QUERIES.name} names items that are not indexed: {sorted(unknown)}.")
        found = {query.text: hits(repertory, query.text, limit=SHOWN) for query in queries}
    answered = [query for query in queries if query.expected]
    first = [query for query in answered if _is_right(query, found[query.text][:1])]
    among = [query for query in answered if _is_right(query, found[query.text])]
    foreign = [query for query in queries if not query.expected]
    empty = [query for query in foreign if not found[query.text]]
    misses = "\n".join(
        f"- {query.text} → {', '.join(f'`{hit[0]}`' for hit in found[query.text][:3]) or 'nothing'}"
        for query in queries
        if query not in among and query not in empty
    )
    shown = [
        (what, f"{percent(len(some) / len(of))} ({len(some)} of {len(of)})", f"{release:.1f}")
        for what, some, of, release in (
            ("a right item first", first, answered, FIRST_RELEASE[0]),
            (f"a right item among the first {SHOWN}", among, answered, FIRST_RELEASE[1]),
            ("empty where it should be", empty, foreign, FIRST_RELEASE[2]),
        )
    ]
    return Part(
        title="Everyday queries",
        text="\n\n".join(
            [
                TEXT.format(count=len(queries), shown=SHOWN, empty=len(foreign)),
                table(("Queries", "share", "first release"), shown),
                "The queries without a right result, and what is shown instead:",
                misses,
            ]
        ),
    )


def _is_right(query: Everyday, found: Sequence[Found]) -> bool:
    return any(item in query.expected for hit in found for item in hit)
