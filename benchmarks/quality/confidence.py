"""The reliability of confidence: on sets it was not fitted to, and where nothing fits."""

import random
from pathlib import Path
from typing import Any

from benchmarks.quality.product import Product, rows
from benchmarks.quality.report import Part, Target, percent, table

HEAD = ("error", "lost", "rejected", "stated", "right")

# The sets whose queries are asked in a catalogue that cannot answer them, by the catalogue.
OF_OTHERS = {
    "azure_mcp": ("livemcp_steps", "metatool_single", "sealtools", "skill_usewhen"),
    "metatool_single": ("azure_mcp",),
    "sealtools": ("azure_mcp",),
}
NONSENSE_OF = "skill_usewhen"
QUERIES = 200  # of each set that are asked elsewhere, and of made-up words
SYLLABLES = ("ba", "dro", "fi", "gul", "ke", "lam", "nix", "po", "qua", "rit", "su", "vo", "zet")

ABSENT = "absent"  # the item that is labelled right where the catalogue has no answer

TEXT = """`error` is the expected calibration error of first hits, in ten bins; `lost` the share of
the queries with a right item among the first five whose right items the threshold hides; `rejected`
the share without a result above it when their right items are excluded; `stated` and `right` are
the mean confidence of first hits and the share of them that are right. All at the default
threshold, from `repertory calibrate`: each set by a curve that was fitted to the other sets."""

WHY = """### Why `lost` and `rejected` pull apart

When the right item is excluded, another is often nearly as good: the tool that lists clusters
beside the one that lists a cluster's databases, a second skill for the same stock prices. People
labelled one of them, but the query fits both, and no confidence can be high for one and low for the
other. So a threshold that hides the twins hides right items too: the curve below, the means over
the sets left out, shows the cost at every point."""

FOREIGN = """### Where nothing fits at all

Queries of one set asked in another set's catalogue, and made-up words: the share without any
result at the default threshold, by the curve that ships (`repertory eval`). Some of the queries
have an answer even there."""


def part(product: Product, sets: dict[str, Path], labelled: list[dict[str, Any]]) -> Part:
    """The figures of cross-validation, their curve over thresholds, and of queries without answer.

    Args:
        product: The command line.
        sets: The labelled sets by name.
        labelled: The JSON of `eval` for them.
    """
    report = product.ask("calibrate", *map(str, sets.values()))["figures"]
    hybrid = report["hybrid"]
    left_out = [*hybrid["sets"].items(), ("**mean**", hybrid["mean"])]
    left_out.append(("all queries together", hybrid["together"]))
    left_out += [
        (f"mean, {mode} arm alone", report[mode]["mean"]) for mode in ("keyword", "semantic")
    ]
    text = [
        TEXT,
        table(("Set", *HEAD), [(name, *_cells(one)) for name, one in left_out]),
        WHY,
        table(
            ("Threshold", *HEAD[1:3]),
            [(value, *_cells(one)[1:3]) for value, one in hybrid["thresholds"].items()],
        ),
        FOREIGN,
        table(("Queries of", "catalogue of", "queries", "rejected"), _foreign(product, sets)),
        "### What ships\n\nThe curve that was fitted to all sets, on those very sets "
        "(`repertory eval`):",
        table(("Set", *HEAD), [(one["set"], *_cells(one["confidence"])) for one in labelled]),
    ]
    targets = [
        Target(
            what=f"Confidence: {name}, {how}",
            asked=asked,
            measured=100 * hybrid[of][name],
            at_least=name == "rejected",
        )
        for name, asked in (("error", 10), ("rejected", 70), ("lost", 7))
        for of, how in (("mean", "mean of the sets left out"), ("together", "all their queries"))
    ]
    return Part(title="Confidence", text="\n\n".join(text), targets=targets)


def _cells(one: dict[str, float]) -> list[str]:
    return [percent(one[name]) for name in HEAD]


def _foreign(product: Product, sets: dict[str, Path]) -> list[tuple[str, ...]]:
    """The share of rejected queries whose answer is not in the catalogue.

    As with other queries, their right items are excluded; the only one is a placeholder.
    """
    asked = {
        (queries, catalogue): rows(sets[queries] / "queries.jsonl")
        for catalogue, others in OF_OTHERS.items()
        for queries in others
        if {queries, catalogue} <= sets.keys()
    }
    if NONSENSE_OF in sets:
        asked["made-up words", NONSENSE_OF] = _nonsense()
    folders = {}
    for (queries, catalogue), texts in asked.items():
        corpus = rows(sets[catalogue] / "corpus.jsonl")
        corpus.append({"id": ABSENT, "kind": "tool", "name": ABSENT})
        name = f"{queries} of {catalogue}"
        folders[name] = product.labelled(
            name, corpus, texts, [(query["id"], ABSENT) for query in texts]
        )
    options = ("--queries", str(QUERIES), "--worst", "0")
    found = product.ask("eval", *folders.values(), *options) if folders else []
    measured = {one["set"]: one for one in found}
    return [
        (queries, catalogue, f"{one['queries']:,}", percent(one["confidence"]["rejected"]))
        for queries, catalogue in asked
        for one in [measured[f"{queries} of {catalogue}"]]
    ]


def _nonsense() -> list[dict[str, str]]:
    chosen = random.Random(1)
    return [
        {
            "id": str(number),
            "text": " ".join(
                "".join(chosen.choices(SYLLABLES, k=chosen.randint(2, 4)))
                for _ in range(chosen.randint(1, 8))
            ),
        }
        for number in range(QUERIES)
    ]
