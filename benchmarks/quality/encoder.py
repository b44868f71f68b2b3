"""The project's own encoder, compared with the report's model."""

from pathlib import Path
from typing import Any

from benchmarks.quality import everyday
from benchmarks.quality.product import Product
from benchmarks.quality.report import Part, Target, percent, ranged, table
from training import heldout

MODEL = "repertory"
WRITTEN = "written"
HELD_OUT = "written, the part left out"
JUDGED = "judged"
# Target nDCG@10 of each set; None means not worse than the report's model.
ASKED = {
    "azure_mcp": 93.0,
    "livemcp_steps": 73.0,
    "metatool_single": 78.0,
    "sealtools": 86.0,
    "skill_usewhen": 75.0,
    "typo": None,
    HELD_OUT: 68.0,
}
OF_JUDGED = (
    ("AUC of the confidence", "auc", 88, True),
    ("answerable queries that show nothing good", "nothingGood", 15, False),
    ("unanswerable queries rejected", "rejected", 75, True),
)

TEXT = """`search.model = "repertory"` is also used if no model can be downloaded. The table has the
nDCG@10 of each set, and below it the figures of `judged` and of the everyday queries. None of the
queries was used in training. `{held_out}` has the tools of four servers and every fifth skill of
`written`; a language model wrote its queries, and those for training.
[training/README.md](../training/README.md) describes the training and other attempts."""


def part(
    product: Product,
    sets: dict[str, Path],
    labelled: list[dict[str, Any]],
    usual: everyday.Outcome,
    project: Path,
    queries: int,
) -> Part:
    """Measure the encoder.

    Args:
        product: The product with the report's model.
        sets: The labelled sets by name.
        labelled: The JSON of `eval` for these sets, with the report's model.
        usual: The results of the everyday queries with the report's model.
        project: The catalogue of real items.
        queries: The maximum number of queries per labelled set; 0 for all.
    """
    options = ("--queries", str(queries), "--worst", "0")
    own = Product(product.cache, MODEL)
    asked = {name: folder for name, folder in sets.items() if name != WRITTEN}
    before = {one["set"]: one for one in labelled}
    if WRITTEN in sets:
        asked[HELD_OUT] = product.folder("sets", HELD_OUT)
        heldout.write(sets[WRITTEN], asked[HELD_OUT])
        [before[HELD_OUT]] = product.ask("eval", str(asked[HELD_OUT]), *options)
    found = own.ask("eval", *map(str, asked.values()), *options)
    after = {one["set"]: one for one in found}
    rows, targets = [], []
    for name in (name for name in ASKED if name in after):
        figures = [one[name]["figures"]["nDCG@10"] for one in (before, after)]
        rows.append((name, f"{after[name]['queries']:,}", *map(ranged, figures)))
        limit = ASKED[name]
        targets.append(
            Target(
                what=f"Our encoder: nDCG@10 of {name}",
                asked=100 * figures[0]["mean"] if limit is None else limit,
                measured=100 * figures[1]["mean"],
            )
        )
    if JUDGED in after:
        for what, name, limit, at_least in OF_JUDGED:
            figures = [one[JUDGED]["judged"][name] for one in (before, after)]
            if None in figures:  # a small sample may have no unanswerable query
                continue
            number = f"{after[JUDGED]['judged']['queries']:,}"
            rows.append((f"{JUDGED}: {what}", number, *map(percent, figures)))
            targets.append(
                Target(
                    what=f"Our encoder: {what} (judged by a language model)",
                    asked=limit,
                    measured=100 * figures[1],
                    at_least=at_least,
                )
            )
    outcomes = (usual.shares(), everyday.measure(own, project).shares())
    rows += [
        (f"everyday: {what}", f"{len(of)}", *(everyday.share(one, of) for one in (some, now)))
        for (what, some, of), (_, now, _) in zip(*outcomes, strict=True)
    ]
    head = ("Set", "Queries", "the model of this report", MODEL)
    text = f"{TEXT.format(held_out=HELD_OUT)}\n\n{table(head, rows)}"
    return Part(title="Our own encoder", text=text, targets=targets)
