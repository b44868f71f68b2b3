"""``repertory eval``: the command and its options, without importing the packages it needs."""

from pathlib import Path
from typing import Annotated

import typer

from repertory.errors import UsageError
from repertory.settings import Settings, load
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, INDEXING, STORE, WEIGHTS, Flags, Output, OutputOption
from repertory_admin.target import here

TRIED = (*WEIGHTS, "threshold")  # settings that affect only searches, not the index
GENERATED_QUERIES = 200  # of each kind


@command(
    app,
    "eval",
    settings=(*STORE, *INDEXING, *TRIED, "limit", *ASKING),
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
            metavar="[FOLDER]...",
            help="Labelled sets: folders with corpus.jsonl, queries.jsonl and qrels.jsonl, and "
            "judgements.jsonl if all items were judged for some queries  "
            "[default: generated queries for the items indexed here]",
            show_default=False,
        ),
    ] = None,
    generate: Annotated[
        bool, typer.Option("--generate", help="Also ask generated queries for labelled sets.")
    ] = False,
    queries: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="The maximum number of queries of a labelled set, and of each generated kind; "
            f"0 means all  [default: all; {GENERATED_QUERIES} of each generated kind]",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING=VALUE",
            help=f"Compare with another {', '.join(TRIED[:-1])} or {TRIED[-1]}; several are "
            "separated by commas; repeatable.",
            show_default=False,
        ),
    ] = None,
    worst: Annotated[
        int, typer.Option(min=0, metavar="N", help="Show this many of the worst items.")
    ] = 10,
    min_recall: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="NUMBER",
            help="Exit code 1 if a set's recall@5 (generated: hit@5) is lower.",
        ),
    ] = 0.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure the ranking on labelled or generated queries.

    Labelled sets are indexed separately from your own items and searched without a threshold,
    unless `--against` tries one. For judged pairs, the confidence is compared with the grades, and
    the shown results are measured at `--limit` and `--threshold`. Generated queries are made from
    the items: their names in every spelling, shortened and misspelt, their descriptions, and the
    sections of their bodies. All ranking figures have 95 % confidence intervals.
    """
    active, directory = here(flags)
    others = {text: _changed(active.flags, text, directory) for text in against or ()}
    from repertory_eval import report  # noqa: PLC0415 - scipy takes seconds, and is optional
    from repertory_eval.evaluate import Evaluation  # noqa: PLC0415 - as above

    evaluation = Evaluation(active, others, GENERATED_QUERIES if queries is None else queries)
    if folders:
        trials = evaluation.of_sets(folders, queries or 0, generate=generate)
    else:
        trials = [evaluation.of_directory(directory)]
    if output is Output.JSON:
        terminal.show_json([report.as_json(trial, worst) for trial in trials])
    else:
        report.show(trials, worst)
    is_low = False
    for trial in trials:
        figure = trial.main()
        if figure and figure.mean < min_recall:
            is_low = True
            terminal.warn(
                f"{trial.title}: {figure.name} is {figure.mean:.3f}, lower than {min_recall:g}"
            )
    if is_low:
        raise typer.Exit(ExitCode.NOT_FOUND)


def _changed(flags: Flags, text: str, directory: Path) -> Settings:
    """The settings with the changes of one ``--against`` option."""
    changes = {}
    for change in text.split(","):
        name, equals, value = change.partition("=")
        field = name.strip().replace("-", "_")
        if not equals or field not in TRIED:
            raise UsageError(
                f"--against cannot try {change.strip()!r}; give SETTING=VALUE with one of "
                f"{', '.join(TRIED)}, which do not change the index."
            )
        changes[field] = value.strip()
    return load({**flags, **changes}, directory)
