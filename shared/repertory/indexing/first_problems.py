"""The problems in a status report: the first ones for each audience."""

from collections import Counter
from collections.abc import Collection, Sequence

from repertory.sources.source import Problem, Severity, Source

MAX_PROBLEMS = 200  # per audience: of items, and as many others


def first_problems(
    problems: Sequence[Problem], of_items: Collection[Problem], sources: Sequence[Source]
) -> list[Problem]:
    """The first problems of each audience, errors first, with a separate limit for each.

    Problems of items have their own limit, because the next process depends on the list for items
    that it does not read again. It finds problems of files by itself.

    Args:
        problems: All problems.
        of_items: Those that are found again only by reading all items.
        sources: The sources of the catalogue.
    """
    audiences = {one.name: one.visible_to for one in sources if one.visible_to}
    counts: Counter[tuple[frozenset[tuple[str, ...]] | None, bool]] = Counter()
    first = []
    for problem in sorted(problems, key=lambda one: one.severity != Severity.ERROR):
        audience = None
        if problem.sources or not audiences:
            audience = frozenset(audiences[one] for one in problem.sources if one in audiences)
        group = audience, problem in of_items
        counts[group] += 1
        if counts[group] <= MAX_PROBLEMS:
            first.append(problem)
    return first
