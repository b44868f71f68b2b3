"""One set of queries that was asked, under the settings in force and under others."""

from collections.abc import Mapping, Sequence

import msgspec

from repertory_eval.compare import Comparison, compare
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
from repertory_eval.reliability import Reliability


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """How a set of queries fared.

    Attributes:
        name: Of the set.
        is_generated: Whether the queries were made from the items that they are to find.
        results: How each fared.
        others: How each fared under other settings, in the same order, by what was changed.
        confidence: What confidence was worth; None for generated queries, which would flatter it.
    """

    name: str
    is_generated: bool
    results: Sequence[Outcome]
    others: Mapping[str, Sequence[Outcome]] = {}
    confidence: Reliability | None = None

    @property
    def measures(self) -> Measures:
        """What is measured of such queries."""
        return GENERATED if self.is_generated else LABELLED

    def figures(self) -> list[Figure]:
        """The means over all queries."""
        return figures(self.results, self.measures)

    def kinds(self) -> "dict[str, Trial]":
        """How the queries with each tag fared."""
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

    def judged(self) -> Figure:
        """The figure that has to reach a least value."""
        return next(one for one in self.figures() if one.name == self.measures.judged_by)

    def hardest(self, most: int) -> list[Hard]:
        """The items that are hardest to find."""
        return hardest(self.results, self.measures.by_name[self.measures.graded_by], most)

    def comparisons(self) -> dict[str, list[Comparison]]:
        """The two main figures under the other settings, against those in force."""
        main = {
            name: self.measures.by_name[name]
            for name in (self.measures.judged_by, self.measures.graded_by)
        }
        return {
            changed: [
                compare(name, list(map(measure, self.results)), list(map(measure, those)))
                for name, measure in main.items()
            ]
            for changed, those in self.others.items()
        }
