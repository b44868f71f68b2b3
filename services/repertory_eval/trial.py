"""The results of one set of queries, under the active settings and under others."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from repertory_eval.compare import Comparison, compare
from repertory_eval.generate import GeneratedQuery
from repertory_eval.judged import Observed
from repertory_eval.measure import (
    GENERATED,
    LABELLED,
    Figure,
    Hard,
    Measures,
    Outcome,
    by_tag,
    figures,
    hardest,
)


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of a set of queries.

    Attributes:
        name: The name of the set.
        is_generated: Whether the queries were made from the items that they should find.
        results: The outcome of each query; empty only for a judged set without right answers.
        others: The outcomes under other settings, in the same order, by change.
        judged: The judged queries of a judged set.
    """

    name: str
    is_generated: bool
    results: Sequence[Outcome]
    others: Mapping[str, Sequence[Outcome]] = {}
    judged: Sequence[Observed] = ()

    @property
    def measures(self) -> Measures:
        """The measures for queries of this kind."""
        return GENERATED if self.is_generated else LABELLED

    @property
    def title(self) -> str:
        """Its name in tables and warnings."""
        return f"{self.name}, generated" if self.is_generated else self.name

    def figures(self) -> list[Figure]:
        """The means over all queries."""
        return figures(self.results, self.measures)

    def kinds(self) -> "dict[str, Trial]":
        """A trial of the queries with each tag."""
        others = {changed: by_tag(results) for changed, results in self.others.items()}
        return {
            tag: Trial(
                name=tag,
                is_generated=self.is_generated,
                results=results,
                others={changed: tagged[tag] for changed, tagged in others.items()},
            )
            for tag, results in by_tag(self.results).items()
        }

    def sources(self) -> "dict[str, Trial]":
        """A trial of the queries made from the items of each source, by name."""
        groups: defaultdict[str, list[Outcome]] = defaultdict(list)
        for one in self.results:
            if isinstance(one.query, GeneratedQuery):
                groups[one.query.source].append(one)
        return {
            source: Trial(name=source, is_generated=True, results=groups[source])
            for source in sorted(groups)
        }

    def main(self) -> Figure | None:
        """The figure that has to reach a minimum; None if there are no results."""
        return next((one for one in self.figures() if one.name == self.measures.main), None)

    def hardest(self, limit: int) -> list[Hard]:
        """The items that are hardest to find."""
        return hardest(self.results, self.measures.graded_by, limit)

    def comparisons(self) -> dict[str, list[Comparison]]:
        """The two main figures under other settings; empty if there are no results to compare."""
        return {
            changed: [
                compare(
                    name,
                    [one.values[name] for one in self.results],
                    [one.values[name] for one in results],
                )
                for name in (self.measures.main, self.measures.graded_by)
            ]
            for changed, results in self.others.items()
            if results
        }
