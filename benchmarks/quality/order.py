"""The order of the hits on every labelled set."""

from typing import Any

from benchmarks.quality.report import Part, Target, ranged, table

SHOWN = ("nDCG@10", "recall@1", "recall@5")
# The recipe to beat on the same sets, with all-MiniLM-L6-v2: nDCG@10, recall@1 and
# recall@5 of a weighted sum of dense, keyword and name scores, normalised for every query.
RECIPE = {
    "azure_mcp": (91.4, 83.8, 96.1),
    "livemcp_steps": (69.3, 56.1, 73.7),
    "metatool_single": (73.4, 61.5, 78.6),
    "sealtools": (84.1, 43.1, 78.5),
    "skill_usewhen": (70.5, 54.1, 80.3),
    "typo": (93.4, 86.5, 98.8),
}

TEXT = """One set of weights for all sets; no threshold; the displayed confidence decides the order.
Beside each figure is that of the recipe to beat, whose scores were normalised for each query and so
could not be a confidence."""


def part(labelled: list[dict[str, Any]]) -> Part:
    """The figures of each set.

    Args:
        labelled: The JSON of `eval` for the labelled sets.
    """
    rows, targets = [], []
    for one in labelled:
        name, figures = one["set"], [one["figures"][shown] for shown in SHOWN]
        recipe = RECIPE.get(name)
        cells = [
            cell
            for place, figure in enumerate(figures)
            for cell in (ranged(figure), f"{recipe[place]:.1f}" if recipe else "")
        ]
        rows.append((name, f"{one['queries']:,}", *cells))
        if recipe:
            what = f"Order: nDCG@10 of {name}, against the recipe"
            targets.append(Target(what=what, asked=recipe[0], measured=100 * figures[0]["mean"]))
    head = ("Set", "Queries", *(cell for name in SHOWN for cell in (name, "recipe")))
    return Part(title="Order", text=f"{TEXT}\n\n{table(head, rows)}", targets=targets)
