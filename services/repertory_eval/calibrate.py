"""``repertory calibrate``: fits the curves of confidence to labelled queries."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from repertory.embedding.models import Model
from repertory.errors import UsageError
from repertory.search.answer import Mode
from repertory.search.engine import SearchEngine
from repertory.settings import Settings, load
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.options import INDEXING, STORE, Flags, Output, OutputOption
from repertory_admin.progress import Bars
from repertory_eval.corpus import indexed
from repertory_eval.fit import Example, examples, fit, leave_one_out
from repertory_eval.labelled import LabelledSet, read_sets

FIGURES = ("error", "lost", "rejected", "stated", "right")


@command(
    app,
    "calibrate",
    settings=(*STORE, *INDEXING, "threshold"),
    examples=(
        "repertory calibrate sets/*",
        "repertory calibrate sets/* --model ./my-model --output json",
    ),
)
def calibrate(
    flags: Flags,
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER",
            help="Labelled sets, two or more: folders as for `repertory eval`, asked by people.",
            show_default=False,
        ),
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Fit the confidence of a model to labelled queries.

    Every query is searched as it is and with its right items excluded, by both arms and by each
    alone. The figures of a set are those of a curve that was fitted without it. The calibration
    belongs in the model's entry in `embedding/models.py`, or in a `calibration.json` beside the
    weights of a model of your own; the curve of words belongs in `search/confidence.py`.
    """
    settings = load(flags, Path.cwd())
    sets = read_sets(folders)
    if len(sets) < 2:
        raise UsageError("Give two labelled sets at least: each is tested by a fit to the others.")
    found: dict[Mode, dict[str, list[Example]]] = {}  # by mode and set
    for labelled in sets:
        model, by_mode = _examples(settings, labelled)
        for mode, of_mode in by_mode.items():
            found.setdefault(mode, {})[labelled.name] = of_mode
    curves = {str(mode): fit(list(by_set.values())) for mode, by_set in found.items()}
    words = curves.pop("keyword")
    report = {
        "model": model.id,
        "calibration": msgspec.to_builtins(msgspec.structs.replace(model.calibration, **curves)),
        "keyword": msgspec.to_builtins(words),
        "figures": {
            str(mode): msgspec.to_builtins(leave_one_out(by_set, settings.values.threshold))
            for mode, by_set in found.items()
        },
    }
    if output is Output.JSON:
        terminal.show_json(report)
    else:
        _show(report)


def _examples(settings: Settings, labelled: LabelledSet) -> tuple[Model, dict[Mode, list[Example]]]:
    """The model, and the examples that each mode finds for the queries of a set."""
    with (
        Bars() as bars,
        indexed(labelled, settings, bars) as repertory,
        ThreadPoolExecutor(1) as reader,
    ):

        def step(done: int) -> None:
            bars.step(f"Searching {labelled.name}, {mode}", done, len(labelled.queries))

        both, found = repertory.engine, {}
        for mode in Mode:
            engine = SearchEngine(
                keywords=None if mode is Mode.SEMANTIC else both.keywords,
                collection=None if mode is Mode.KEYWORD else both.collection,
                embedding=repertory.embedding,
                reader=reader,
            )
            found[mode] = examples(engine, labelled.queries, step)
        return repertory.embedding().model, found


def _show(report: dict[str, Any]) -> None:
    for mode, figures in report["figures"].items():
        rows = [
            *figures["sets"].items(),
            ("mean", figures["mean"]),
            ("together", figures["together"]),
        ]
        _title(f"{mode}, each set by a curve fitted without it:")
        _show_rows("Set", rows)
        _title(f"{mode}, mean of the sets at other thresholds:")
        _show_rows("Threshold", list(figures["thresholds"].items()))
    _title(f"The calibration of {report['model']}, fitted to all sets:")
    terminal.show_json(report["calibration"])
    _title("The curve of words, fitted to all sets:")
    terminal.show_json(report["keyword"])


def _title(text: str) -> None:
    terminal.say()
    terminal.say(text)


def _show_rows(first: str, rows: Sequence[tuple[str, dict[str, float]]]) -> None:
    terminal.show_table(
        (first, *FIGURES),
        [(name, *(f"{row[figure]:.3f}" for figure in FIGURES)) for name, row in rows],
        right=FIGURES,
        styles={first: lambda _: "bold cyan"},
    )
