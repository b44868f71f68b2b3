"""The effect of indexing bodies on queries about bodies and about descriptions."""

import re
from pathlib import Path
from typing import Any

from benchmarks.quality.product import Product, rows
from benchmarks.quality.report import Part, percent, ranged, table
from repertory.sources.registry import build
from repertory_eval.compare import compare

SET = "skill_usewhen"
WITHOUT, WITH = "without bodies", "with bodies"
GRADE = "nDCG@10"  # the measure with which `eval` grades single items
REPEATED_WORDS = 5  # a body repeats a query if it has this many of its consecutive words
NEW, REPEATED = "new to the body", "repeated in the body"

NO_SECTIONS = "section_weight=0"
DESCRIBED = ("task", "summary")
QUERIES = 500  # queries of each generated kind

_WORD = re.compile(r"\w+")

LABELLED = """### With and without

Of the {items:,} skills of {name}, the {found:,} that are among the real ones are indexed with and
without their bodies, and searched with the {queries:,} queries that they answer. The queries were
cut from the descriptions, and some bodies repeat them ({said} consecutive words), so those are
listed separately. With whole descriptions, bodies would gain less. `task` and `summary` are
generated from the rest of the descriptions."""

SECTIONS = """### Sections

The catalogue of all real items is searched with generated queries: the heading of a section with
the first words below it (`section`), and descriptions. It is searched with and without section
vectors (`--against section_weight=0`); the interval is that of the paired difference."""


def part(product: Product, sets: dict[str, Path], skills: Path, project: Path) -> Part:
    """Measure people's queries with and without bodies, and generated queries.

    Args:
        product: The command line.
        sets: The labelled sets by name.
        skills: The folders of real skills, each named after its repository.
        project: The catalogue of real items.
    """
    text = [_of_labelled(product, sets[SET], _bodies(skills))] if SET in sets else []
    text.append(_of_sections(product, project))
    return Part(title="Bodies", text="\n\n".join(text))


def _bodies(skills: Path) -> dict[str, str]:
    """The bodies of the real skills, by their ids in the labelled set."""
    found = {}
    for folder in sorted(path for path in skills.iterdir() if path.is_dir()):
        [source] = build({"type": "skills", "path": str(folder), "name": folder.name}, skills)
        repository = folder.name.replace("__", "/", 1)
        for item in source.scan().items:
            place = item.id.removeprefix(f"{folder.name}/")
            found[f"{repository}:{place}"] = item.body
    return found


def _of_labelled(product: Product, folder: Path, bodies: dict[str, str]) -> str:
    items = rows(folder / "corpus.jsonl")
    corpus = [row for row in items if row["id"] in bodies]
    full = [row | {"body": bodies[row["id"]]} for row in corpus]
    right = {
        row["query_id"]: row["item_id"]
        for row in rows(folder / "qrels.jsonl")
        if row["item_id"] in bodies
    }
    queries = [
        row | {"tags": [REPEATED if _repeats(bodies[right[row["id"]]], row["text"]) else NEW]}
        for row in rows(folder / "queries.jsonl")
        if row["id"] in right
    ]
    folders = [
        product.labelled(name, those, queries, right.items())
        for name, those in ((WITHOUT, corpus), (WITH, full))
    ]
    made = product.ask("eval", *folders, "--generate", "--worst", str(len(corpus)))
    people = {one["set"]: one for one in made if not one["generated"]}
    generated = {one["set"]: one["kinds"] for one in made if one["generated"]}
    by_kind = {"all": people}
    by_kind |= {
        kind: {n: one["kinds"][kind] for n, one in people.items()} for kind in (NEW, REPEATED)
    }
    by_kind |= {f"`{kind}`": {n: one[kind] for n, one in generated.items()} for kind in DESCRIBED}
    shown = [
        (
            kind,
            f"{both[WITH]['queries']:,}",
            name,
            *(ranged(both[w]["figures"][name]) for w in (WITHOUT, WITH)),
        )
        for kind, both in by_kind.items()
        for name in (GRADE, "recall@5", "hit@1", "hit@5")
        if name in both[WITH]["figures"]
    ]
    words = LABELLED.format(
        name=SET, found=len(corpus), items=len(items), queries=len(queries), said=REPEATED_WORDS
    )
    return "\n\n".join(
        [
            words,
            table(("Queries", "number", "figure", WITHOUT, WITH), shown),
            _difference(people, right),
        ]
    )


def _difference(people: dict[str, Any], right: dict[str, str]) -> str:
    """A sentence that compares people's queries with and without bodies, item by item."""
    items = sorted({*right.values()})
    before, after = (
        [_graded(people[name]).get(item, 1.0) for item in items] for name in (WITHOUT, WITH)
    )
    one = compare(GRADE, before, after)
    chance = f"= {one.p:.3f}" if one.p >= 0.001 else "< 0.001"
    return (
        f"{GRADE} by item, with bodies against without: {_signed(one.difference)}"
        f"{_interval(one.low, one.high)}; {one.better} items fare better, {one.same} "
        f"the same, {one.worse} worse; p {chance}."
    )


def _graded(one: dict[str, Any]) -> dict[str, float]:
    """The mean grade of each item whose queries are not all perfect."""
    return {hard["item"]: hard[GRADE] for hard in one["worst"]}


def _of_sections(product: Product, project: Path) -> str:
    [one] = product.ask(
        *("eval", "--queries", str(QUERIES), "--worst", "0", "--against", NO_SECTIONS),
        directory=project,
    )
    shown = []
    for kind in ("section", *DESCRIBED):
        measured = one["kinds"][kind]
        for name, compared in measured["against"][NO_SECTIONS].items():
            low, high = compared["high"], compared["low"]  # reverses the comparison
            interval = _interval(None if low is None else -low, None if high is None else -high)
            shown.append(
                (
                    f"`{kind}`",
                    f"{measured['queries']:,}",
                    name,
                    percent(compared["after"]),
                    percent(compared["before"]),
                    f"{_signed(-compared['difference'])}{interval}",
                )
            )
    head = ("Queries", "number", "figure", "without sections", "with sections", "difference")
    return f"{SECTIONS}\n\n{table(head, shown)}"


def _interval(low: float | None, high: float | None) -> str:
    """An interval in parentheses, or empty if missing."""
    return "" if low is None or high is None else f" ({_signed(low)} to {_signed(high)})"


def _signed(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # adding 0 turns -0.0 into 0.0


def _repeats(body: str, query: str) -> bool:
    """Whether a body contains several consecutive words of a query."""
    said = f" {' '.join(_WORD.findall(body.lower()))} "
    words = _WORD.findall(query.lower())
    runs = (
        " ".join(words[k : k + REPEATED_WORDS])
        for k in range(max(len(words) - REPEATED_WORDS, 0) + 1)
    )
    return any(f" {run} " in said for run in runs)
