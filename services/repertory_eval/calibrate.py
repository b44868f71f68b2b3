"""Fits the curves of confidence to labelled sets."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from repertory.embedding.models import Calibration, Curve, Model
from repertory.errors import UsageError
from repertory.search.answer import Mode
from repertory.search.engine import SearchEngine
from repertory.settings import Settings
from repertory_admin import terminal
from repertory_admin.progress import Bars
from repertory_eval.corpus import indexed
from repertory_eval.fit import Example, Tested, examples, fit, leave_one_out
from repertory_eval.labelled import LabelledSet, read_sets
from repertory_eval.report import show_reliability, show_title


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """The curves fitted to all sets, and the figures of sets under curves fitted without them.

    Attributes:
        model: The id of the model.
        calibration: Its entry in ``embedding/models.py``, or its ``calibration.json``.
        keyword: The curve of ``search/confidence.py``.
        figures: By mode.
    """

    model: str
    calibration: Calibration
    keyword: Curve
    figures: dict[str, Tested]


def calibrate(settings: Settings, folders: Sequence[Path]) -> Calibrated:
    """Fit the curves, and test each with the sets that it was not fitted to.

    Raises:
        UsageError: There are fewer than two sets, or one is invalid.
    """
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
    return Calibrated(
        model=model.id,
        calibration=msgspec.structs.replace(model.calibration, **curves),
        keyword=words,
        figures={
            str(mode): leave_one_out(by_set, settings.values.threshold)
            for mode, by_set in found.items()
        },
    )


def show(calibrated: Calibrated) -> None:
    """Show the curves and their figures."""
    for mode, tested in calibrated.figures.items():
        rows = [*tested.sets.items(), ("mean", tested.mean), ("together", tested.together)]
        show_reliability(f"{mode}, each set by a curve fitted to the others:", "Set", rows)
        title = f"{mode}, mean of the sets at other thresholds:"
        show_reliability(title, "Threshold", tested.thresholds.items())
    show_title(f"The calibration of {calibrated.model}, fitted to all sets:")
    terminal.show_json(calibrated.calibration)
    show_title("The keyword curve, fitted to all sets:")
    terminal.show_json(calibrated.keyword)


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
