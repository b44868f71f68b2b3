"""``repertory eval``: the figures of the ranking on labelled sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from repertory.settings import Settings, load
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.exits import ExitCode
from repertory_admin.options import INDEXING, STORE, Flags, Output, OutputOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from repertory.evaluation.measure import Figure, Outcome

JUDGED_BY = "recall@5"


@command(
    app,
    "eval",
    settings=(*STORE, *INDEXING, "alpha"),
    examples=(
        "repertory eval my-labelled-set",
        "repertory eval sets/* --min-recall 0.8 --output json",
    ),
)
def evaluate(
    flags: Flags,
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER",
            help="Labelled sets: folders of corpus.jsonl, queries.jsonl and qrels.jsonl.",
            show_default=False,
        ),
    ],
    worst: Annotated[int, typer.Option(min=0, help="Show so many of the worst queries.")] = 0,
    min_recall: Annotated[
        float, typer.Option(min=0, max=1, help=f"Exit code 1 if a set's {JUDGED_BY} is lower.")
    ] = 0.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure the ranking on labelled queries.

    The figures have 95 % confidence intervals. Each set's corpus is indexed apart from your own
    items; the threshold is off.
    """
    from repertory.evaluation.measure import figures  # noqa: PLC0415 - --help must be instant

    settings = load(flags, Path.cwd())
    sets = {}
    for given in folders:
        folder = given.parent if given.is_file() else given
        name = folder.resolve().name
        sets[str(folder) if name in sets else name] = _outcomes(settings, folder)
    measured = {name: figures(results) for name, results in sets.items()}
    if output is Output.JSON:
        terminal.show_json([_as_json(name, sets[name], measured[name], worst) for name in sets])
    else:
        _show(sets, measured)
        for name, results in sets.items():
            _show_worst(name, _worst(results, worst))
    low = [name for name, row in measured.items() if _mean(row, JUDGED_BY) < min_recall]
    for name in low:
        recall = _mean(measured[name], JUDGED_BY)
        terminal.warn(f"{name}: {JUDGED_BY} is {recall:.3f}, lower than {min_recall:g}")
    if low:
        raise typer.Exit(ExitCode.NOT_FOUND)


def _outcomes(settings: Settings, folder: Path) -> "list[Outcome]":
    from repertory.compose import open_corpus  # noqa: PLC0415 - --help must be instant
    from repertory.evaluation.labelled import read_queries  # noqa: PLC0415 - likewise
    from repertory.evaluation.measure import DEPTH, outcomes  # noqa: PLC0415 - likewise
    from repertory.search.answer import Query  # noqa: PLC0415 - likewise
    from repertory_admin.progress import Bars  # noqa: PLC0415 - likewise

    queries = read_queries(folder)
    degraded = set()
    with Bars() as bars, open_corpus(settings, folder, bars.download) as repertory:
        report = repertory.index(bars.step)

        def search(text: str) -> list[str]:
            query = Query(text=text, limit=DEPTH, threshold=0.0, alpha=settings.values.alpha)
            answer = repertory.search(query)
            degraded.add(answer.degraded)
            return [hit.id for hit in answer.hits]

        found = outcomes(queries, search, lambda: bars.step("Searching", 1, len(queries)))
    for notice in [*report.notices, *filter(None, degraded), *map(str, report.problems[:3])]:
        terminal.warn(f"{folder.name}: {notice}")
    return found


def _worst(results: "Sequence[Outcome]", most: int) -> "list[Outcome]":
    return sorted(results, key=lambda one: (one.ndcg, one.query.id))[:most]


def _mean(row: "Sequence[Figure]", name: str) -> float:
    return next(figure.mean for figure in row if figure.name == name)


def _show(sets: "dict[str, list[Outcome]]", measured: "dict[str, list[Figure]]") -> None:
    names = [figure.name for figure in next(iter(measured.values()))]
    terminal.show_table(
        ("Set", "Queries", *names),
        [
            (
                name,
                f"{len(sets[name]):,}",
                *(f"{figure.mean:.3f} ±{figure.margin:.3f}" for figure in row),
            )
            for name, row in measured.items()
        ],
        right=("Queries", *names),
        styles={"Set": lambda _: "bold cyan"},
    )


def _show_worst(name: str, results: "Sequence[Outcome]") -> None:
    if not results:
        return
    terminal.say()
    terminal.say(terminal.safe(f"{name}, the worst queries:"))
    terminal.show_table(
        ("nDCG@10", "Query", "Right", "Found"),
        [
            (
                f"{one.ndcg:.2f}",
                one.query.text,
                ", ".join(one.query.grades),
                ", ".join(one.found[:3]),
            )
            for one in results
        ],
    )


def _as_json(
    name: str, results: "list[Outcome]", row: "list[Figure]", worst: int
) -> dict[str, Any]:
    return {
        "set": name,
        "queries": len(results),
        "figures": {
            figure.name: {"mean": round(figure.mean, 4), "margin": round(figure.margin, 4)}
            for figure in row
        },
        "worst": [
            {
                "id": one.query.id,
                "query": one.query.text,
                "nDCG@10": round(one.ndcg, 4),
                "right": one.query.grades,
                "found": list(one.found),
            }
            for one in _worst(results, worst)
        ],
    }
