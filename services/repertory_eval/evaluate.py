"""``repertory eval``: the figures of the ranking, on labelled and on generated queries."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from repertory.errors import UsageError
from repertory.settings import Settings, load
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.backend import target
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, INDEXING, STORE, WEIGHTS, Flags, Output, OutputOption
from repertory_admin.progress import Bars
from repertory_eval import report
from repertory_eval.ask import ACTIVE, GENERATED_QUERIES, Asking
from repertory_eval.corpus import indexed
from repertory_eval.labelled import LabelledSet, evenly, read_sets
from repertory_eval.trial import Trial

TRIED = (*WEIGHTS, "threshold")  # settings that change searches alone


@command(
    app,
    "eval",
    settings=(*STORE, *INDEXING, *TRIED, *ASKING),
    examples=(
        "repertory eval",
        "repertory eval my-labelled-set --generate",
        "repertory eval sets/* --min-recall 0.8 --output json",
        "repertory eval sets/* --against alpha=0.5 --against alpha=0.5,name_weight=1",
    ),
)
def evaluate(
    flags: Flags,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER",
            help="Labelled sets: folders of corpus.jsonl, queries.jsonl and qrels.jsonl  "
            "[default: generated queries for the items indexed here]",
            show_default=False,
        ),
    ] = None,
    generate: Annotated[
        bool, typer.Option("--generate", help="Ask generated queries for labelled sets, too.")
    ] = False,
    queries: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="The maximum number of queries of a labelled set, and of each generated kind; "
            f"0 asks all  [default: all; {GENERATED_QUERIES} of each generated kind]",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING=VALUE",
            help=f"Compare with another {', '.join(TRIED)}; several with commas; repeatable.",
            show_default=False,
        ),
    ] = None,
    worst: Annotated[int, typer.Option(min=0, help="Show this many of the worst items.")] = 10,
    min_recall: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Exit code 1 if a set's recall@5 (generated: hit@5) is lower."
        ),
    ] = 0.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure the ranking on labelled or generated queries.

    Labelled sets are indexed apart from your own items and searched without a threshold, unless
    `--against` tries one. Generated
    queries are made from the items: names in every spelling, begun and misspelt, descriptions, and
    sections of bodies.
    All figures have 95 % confidence intervals.
    """
    directory = Path.cwd()
    tried = {ACTIVE: load(flags, directory)}
    tried |= {text: _changed(flags, text, directory) for text in against or ()}
    trials: list[Trial] = []
    if folders:
        for labelled in read_sets(folders):
            trials += _of_labelled(labelled, tried, queries, generate=generate)
    else:
        trials.append(_of_indexed(directory, tried, queries))
    if output is Output.JSON:
        terminal.show_json([report.as_json(trial, worst) for trial in trials])
    else:
        report.show(trials, worst)
    low = [trial for trial in trials if trial.judged().mean < min_recall]
    for trial in low:
        figure = trial.judged()
        terminal.warn(
            f"{trial.title}: {figure.name} is {figure.mean:.3f}, lower than {min_recall:g}"
        )
    if low:
        raise typer.Exit(ExitCode.NOT_FOUND)


def _changed(flags: Flags, text: str, directory: Path) -> Settings:
    """The settings with the changes of an ``--against``."""
    changes = {}
    for change in text.split(","):
        name, equals, value = change.partition("=")
        field = name.strip().replace("-", "_")
        if not equals or field not in TRIED:
            raise UsageError(
                f"--against cannot try {change.strip()!r}; give SETTING=VALUE with one of "
                f"{', '.join(TRIED)}, which need no other index."
            )
        changes[field] = value.strip()
    return load({**flags, **changes}, directory)


def _of_indexed(directory: Path, tried: Mapping[str, Settings], limit: int | None) -> Trial:
    """Ask generated queries for the items that are indexed here."""
    with Bars() as bars, target(tried[ACTIVE], directory).open_indexed(bars) as answering:
        return Asking(answering, tried, bars).generated(directory.name or "/", limit)


def _of_labelled(
    labelled: LabelledSet, tried: Mapping[str, Settings], limit: int | None, *, generate: bool
) -> list[Trial]:
    """Ask a labelled set's queries and, if wanted, generated ones for its corpus."""
    queries = evenly(labelled.queries, limit or 0)
    with Bars() as bars, indexed(labelled, tried[ACTIVE], bars, words_suffice=True) as repertory:
        asking = Asking(repertory, tried, bars)
        trials = [asking.labelled(labelled.name, queries, repertory.engine)]
        if generate:
            trials.append(asking.generated(labelled.name, limit))
    return trials
