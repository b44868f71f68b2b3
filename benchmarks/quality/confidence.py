"""The confidence of judged pairs, and of hits in catalogues without an answer."""

import random
from pathlib import Path
from typing import Any

from benchmarks.quality.product import Product, rows
from benchmarks.quality.report import Part, Target, percent, table

JUDGED = "judged"
WRITTEN = "written"  # this set labels an item for most queries of the judged set
COLUMNS = {
    "error": "error",
    "AUC": "auc",
    "average precision": "precision",
    "nothing good": "nothingGood",
    "rejected": "rejected",
    "good": "good",
    "unjudged": "unjudged",
}
MEASURED_LIMIT = 5  # the limit at which the first release was measured
# The first release's figures, on these queries and on an equal number of held-out queries.
FIRST_RELEASE = ("13.3", "76.6", "53", "30", "52", "38", "")
TARGETS = (
    ("calibration error over all judged pairs", "error", 5, False),
    ("AUC of judged pairs", "auc", 82, True),
    ("answerable queries that show nothing good", "nothingGood", 20, False),
    ("unanswerable queries rejected", "rejected", 65, True),
    ("good ones among the shown and judged", "good", 50, True),
)

# Per catalogue, the sets whose queries it cannot answer.
OF_OTHERS = {
    "azure_mcp": ("livemcp_steps", "metatool_single", "sealtools", "skill_usewhen"),
    "metatool_single": ("azure_mcp",),
    "sealtools": ("azure_mcp",),
}
NONSENSE_OF = "skill_usewhen"
QUERIES = 200  # queries per set in another catalogue, and queries of made-up words
SYLLABLES = ("ba", "dro", "fi", "gul", "ke", "lam", "nix", "po", "qua", "rit", "su", "vo", "zet")

TEXT = """The set has {queries} queries with {pairs:,} pairs of a query and an item. Each pair was
**judged by a language model** from 0 to 3, and grades of 2 and 3 are good. For each query, the
eight items that the first release ranked best were judged.

`error` is the expected calibration error of the stated confidence over *all* judged pairs, shown or
not, in ten bins; `AUC` is how often a good pair has a higher confidence than another; `nothing
good` is the share of the answerable queries that show no item judged good; `rejected` is the share
of the other queries that show nothing; `good` is the share of the shown and judged items that are
good; `unjudged` is the share of the shown items that were not judged. Unjudged items count neither
as good nor as bad, so `nothing good` is an upper bound. The targets are for the default settings;
the first release was measured with a limit of {limit}, and so are the other rows."""

ELSEWHERE = """For {labelled} of the {unanswered} queries without a good judged item, the set
`written` labels an item that answers them. This item is also in the catalogue, but was not among
the eight judged ones. With a limit of {limit}, {shown} of these queries show it, which `rejected`
counts as a failure. {right} % of the {unanswered} show nothing, or the labelled item."""

FOREIGN = """### Where nothing fits at all

The share of queries without any result at the default threshold, for queries of one set in another
set's catalogue, and for made-up words. Some of the queries have an answer even there. The last row
covers the judged set's queries from other catalogues, without those for which an item was judged
good."""


def part(product: Product, sets: dict[str, Path], labelled: list[dict[str, Any]]) -> Part:
    """Measure judged pairs, and queries without an answer.

    Args:
        product: The command line.
        sets: The labelled sets by name.
        labelled: The JSON of `eval` for them, with the default settings.
    """
    text, targets, foreign = [], [], None
    if JUDGED in sets:
        [measured] = product.ask(
            *("eval", str(sets[JUDGED]), "--worst", "0", "--limit", str(MEASURED_LIMIT))
        )
        judged = measured["judged"]
        [default] = [one["judged"] for one in labelled if one["set"] == JUDGED]
        foreign = judged["kinds"]["foreign"]
        shown = [
            (f"all, {MEASURED_LIMIT} results", f"{judged['queries']}", *_cells(judged)),
            ("the same, first release", "320", *FIRST_RELEASE),
            ("all, the default limit", f"{default['queries']}", *_cells(default)),
        ]
        shown += [
            (f"`{kind}`", f"{one['queries']}", *_cells(one))
            for kind, one in judged["kinds"].items()
        ]
        text.append(
            TEXT.format(queries=judged["queries"], pairs=judged["pairs"], limit=MEASURED_LIMIT)
        )
        text.append(table(("Queries", "number", *COLUMNS), shown))
        if WRITTEN in sets:
            text.append(_labelled_elsewhere(product, sets, judged))
        targets += [
            Target(
                what=f"Confidence: {what} (judged by a language model)",
                asked=asked,
                measured=100 * default[name],
                at_least=at_least,
            )
            for what, name, asked, at_least in TARGETS
        ]
    of_others, nonsense = _foreign(product, sets)
    rejected = [*of_others, *nonsense]
    if of_others:
        mean = sum(share for *_, share in of_others) / len(of_others)
        what = "Confidence: queries of other catalogues rejected, mean of the rows"
        targets.append(Target(what=what, asked=90, measured=100 * mean))
    if foreign:
        share = foreign["rejected"]
        number = foreign["queries"] - foreign["answerable"]
        rejected.append(("other sets", JUDGED, number, share))
        what = "Confidence: queries of other catalogues rejected, judged set"
        targets.append(Target(what=what, asked=90, measured=100 * share))
    targets += [
        Target(what="Confidence: made-up words rejected", asked=99, measured=100 * share)
        for *_, share in nonsense
    ]
    head = ("Queries of", "catalogue of", "queries", "rejected")
    body = [
        (queries, catalogue, f"{number:,}", percent(share))
        for queries, catalogue, number, share in rejected
    ]
    text += [FOREIGN, table(head, body)]
    return Part(title="Confidence", text="\n\n".join(text), targets=targets)


def _labelled_elsewhere(product: Product, sets: dict[str, Path], judged: dict[str, Any]) -> str:
    """Measure queries that have no good judged item, but an item that `written` labels."""
    written = {query["id"]: query["text"] for query in rows(sets[WRITTEN] / "queries.jsonl")}
    labels = {
        written[label["query_id"]]: label["item_id"]
        for label in rows(sets[WRITTEN] / "qrels.jsonl")
    }
    answered = {label["query_id"] for label in rows(sets[JUDGED] / "qrels.jsonl")}
    unanswered = [
        query for query in rows(sets[JUDGED] / "queries.jsonl") if query["id"] not in answered
    ]
    asked = [query for query in unanswered if query["text"] in labels]
    good = [(query["id"], labels[query["text"]], 3) for query in asked]
    corpus = rows(sets[JUDGED] / "corpus.jsonl")
    folder = product.labelled("labelled of judged", corpus, asked, (), judgements=good)
    limit = ("--limit", str(MEASURED_LIMIT))
    [found] = product.ask("eval", folder, "--worst", "0", *limit)
    shown = round(len(asked) * (1 - found["judged"]["nothingGood"]))
    right = judged["rejected"] + shown / len(unanswered)
    return ELSEWHERE.format(
        labelled=len(asked),
        unanswered=len(unanswered),
        limit=MEASURED_LIMIT,
        shown=shown,
        right=percent(right),
    )


def _cells(one: dict[str, Any]) -> list[str]:
    return ["" if one[name] is None else percent(one[name]) for name in COLUMNS.values()]


_Row = tuple[str, str, int, float]  # queries' set, catalogue's set, number, rejected share


def _foreign(product: Product, sets: dict[str, Path]) -> tuple[list[_Row], list[_Row]]:
    """The rejected shares of other sets' queries, and of queries of made-up words."""
    asked = {
        (queries, catalogue): rows(sets[queries] / "queries.jsonl")
        for catalogue, others in OF_OTHERS.items()
        for queries in others
        if {queries, catalogue} <= sets.keys()
    }
    made_up = "made-up words"
    if NONSENSE_OF in sets:
        asked[made_up, NONSENSE_OF] = _nonsense()
    folders = {}
    for (queries, catalogue), texts in asked.items():
        corpus = rows(sets[catalogue] / "corpus.jsonl")
        name = f"{queries} of {catalogue}"
        # A judged set without good items: every query should be rejected.
        none = [(query["id"], corpus[0]["id"], 0) for query in texts]
        folders[name] = product.labelled(name, corpus, texts, (), judgements=none)
    options = ("--queries", str(QUERIES), "--worst", "0")
    found = product.ask("eval", *folders.values(), *options) if folders else []
    measured = {one["set"]: one["judged"] for one in found}
    lines = [
        (queries, catalogue, one["queries"], one["rejected"])
        for queries, catalogue in asked
        for one in [measured[f"{queries} of {catalogue}"]]
    ]
    return [one for one in lines if one[0] != made_up], [one for one in lines if one[0] == made_up]


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
