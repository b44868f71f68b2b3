"""The order of the hits on every labelled set."""

from typing import Any

from benchmarks.quality.report import Part, Target, ranged, table

SHOWN = ("nDCG@10", "recall@1", "recall@5")
# nDCG@10, recall@1 and recall@5 of the baseline on the same sets, with all-MiniLM-L6-v2. It is a
# weighted sum of dense, keyword and name scores, normalised for every query.
RECIPE = {
    "azure_mcp": (91.4, 83.8, 96.1),
    "livemcp_steps": (69.3, 56.1, 73.7),
    "metatool_single": (73.4, 61.5, 78.6),
    "sealtools": (84.1, 43.1, 78.5),
    "skill_usewhen": (70.5, 54.1, 80.3),
    "typo": (93.4, 86.5, 98.8),
}
# The same figures of the first release, at commit e8e8fda.
FIRST_RELEASE = {
    "azure_mcp": (91.5, 83.0, 96.9),
    "livemcp_steps": (70.0, 56.1, 76.8),
    "metatool_single": (73.5, 63.0, 78.9),
    "sealtools": (84.1, 43.3, 78.2),
    "skill_usewhen": (71.4, 54.9, 81.3),
    "typo": (97.6, 94.7, 99.4),
    "written": (56.2, 41.4, 64.1),
}
WRITTEN = "written"  # queries of this set were written by a language model
GAIN = 3.0  # required gain of its nDCG@10
JUDGED = "judged"  # excluded, because only results of the first release were judged

TEXT = """All sets use the same weights and no threshold; the displayed confidence determines the
order. Each figure is shown with that of a baseline, whose scores were normalised for each query and
so could not serve as a confidence, and with that of the first release. No set may lose more than
its noise: the first release's figure must be below the upper end of the 95 % interval.

A language model wrote each query of `written` for one item; other items may fit as well, so its
figures are lower bounds."""


def part(labelled: list[dict[str, Any]]) -> Part:
    """Show the figures of each set.

    Args:
        labelled: The JSON of `eval` for the labelled sets.
    """
    rows, targets = [], []
    for one in labelled:
        name, figures = one["set"], [one["figures"][shown] for shown in SHOWN]
        if name == JUDGED:
            continue
        recipe, first = RECIPE.get(name, ()), FIRST_RELEASE.get(name, ())
        cells = [
            cell
            for place, figure in enumerate(figures)
            for cell in (
                ranged(figure),
                *(f"{of[place]:.1f}" if of else "" for of in (recipe, first)),
            )
        ]
        is_written = name == WRITTEN
        shown = f"{name} (written by a language model)" if is_written else name
        rows.append((shown, f"{one['queries']:,}", *cells))
        if first:
            measured = 100 * figures[0]["mean"]
            noise = 100 * figures[0]["high"] - measured
            targets.append(
                Target(
                    what=f"Order: nDCG@10 of {shown}, the first release's {first[0]} "
                    + (f"and {GAIN:g} more" if is_written else "less its noise"),
                    asked=first[0] + (GAIN if is_written else -noise),
                    measured=measured,
                )
            )
    head = (
        *("Set", "Queries"),
        *(cell for name in SHOWN for cell in (name, "recipe", "first release")),
    )
    return Part(title="Order", text=f"{TEXT}\n\n{table(head, rows)}", targets=targets)
