"""Results of everyday queries, which were written by hand before any result was seen."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.quality.product import Product, hits
from benchmarks.quality.report import Part, percent, table
from repertory_eval.measure import Found

QUERIES = Path(__file__).with_name("everyday.jsonl")
SHOWN = 5
FIRST_RELEASE = (77.6, 82.7, 91.7)  # at commit e8e8fda

TEXT = """{count} everyday queries, and the items that a person would be glad to see, were written
by hand before any result was seen ([everyday.jsonl](quality/everyday.jsonl)). They are searched in
the catalogue of all real items, with the default threshold and {shown} results. {empty} of them
have no answer there and should show nothing."""


class Everyday(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query, and the ids of the expected items; empty if no item should be shown."""

    text: str
    expected: frozenset[str]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the queries.

    Attributes:
        found: The hits of each query, by its text.
        answered: The queries that have an answer.
        first: The answered queries with a right item first.
        among: The answered queries with a right item among the first ``SHOWN``.
        foreign: The queries without an answer.
        empty: The queries without an answer that show nothing.
    """

    found: Mapping[str, Sequence[Found]]
    answered: Sequence[Everyday]
    first: Sequence[Everyday]
    among: Sequence[Everyday]
    foreign: Sequence[Everyday]
    empty: Sequence[Everyday]

    def shares(self) -> list[tuple[str, Sequence[Everyday], Sequence[Everyday]]]:
        """The figures: a description, the successful queries, and all queries of that kind."""
        return [
            ("a right item first", self.first, self.answered),
            (f"a right item among the first {SHOWN}", self.among, self.answered),
            ("empty where it should be", self.empty, self.foreign),
        ]


def measure(product: Product, project: Path) -> Outcome:
    """Run all queries on the indexed catalogue of real items."""
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
    foreign = [query for query in queries if not query.expected]
    return Outcome(
        found=found,
        answered=answered,
        first=[query for query in answered if _is_right(query, found[query.text][:1])],
        among=[query for query in answered if _is_right(query, found[query.text])],
        foreign=foreign,
        empty=[query for query in foreign if not found[query.text]],
    )


def part(outcome: Outcome) -> Part:
    """Show the figures and the failed queries."""
    fulfilled = {query.text for query in (*outcome.among, *outcome.empty)}
    misses = "\n".join(
        f"- {text} → {', '.join(f'`{hit[0]}`' for hit in found[:3]) or 'nothing'}"
        for text, found in outcome.found.items()
        if text not in fulfilled
    )
    shown = [
        (what, share(some, of), f"{release:.1f}")
        for (what, some, of), release in zip(outcome.shares(), FIRST_RELEASE, strict=True)
    ]
    text = TEXT.format(count=len(outcome.found), shown=SHOWN, empty=len(outcome.foreign))
    return Part(
        title="Everyday queries",
        text="\n\n".join(
            [
                text,
                table(("Queries", "share", "first release"), shown),
                "The queries without a right result, and what is shown instead:",
                misses,
            ]
        ),
    )


def share(some: Sequence[Everyday], of: Sequence[Everyday]) -> str:
    """A share of queries as a percentage, with the counts."""
    return f"{percent(len(some) / len(of))} ({len(some)} of {len(of)})"


def _is_right(query: Everyday, found: Sequence[Found]) -> bool:
    return any(item in query.expected for hit in found for item in hit)
