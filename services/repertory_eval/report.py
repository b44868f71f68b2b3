"""The trials of ``repertory eval``, as tables and as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from repertory_admin import terminal
from repertory_eval.compare import Comparison
from repertory_eval.measure import Figure
from repertory_eval.reliability import Reliability
from repertory_eval.trial import Trial

FLATTERS = (
    "These queries are generated from the very texts that are searched, which flatters the figures."
)
# The figures that fit in a table; JSON has all.
SHOWN = ("recall@1", "recall@5", "nDCG@10", "hit@1", "hit@5", "hidden")
MAX_FOUND = 3


def show(trials: Sequence[Trial], worst: int) -> None:
    """Show tables of the figures, of the effect of other settings, and of the worst items."""
    if labelled := [trial for trial in trials if not trial.is_generated]:
        _show_figures(
            "Set", [(trial.name, len(trial.results), trial.figures()) for trial in labelled]
        )
        show_reliability(
            "Confidence: its error, and what the threshold loses and rejects:",
            "Set",
            [(trial.name, trial.confidence) for trial in labelled if trial.confidence],
        )
    for trial in trials:
        if trial.is_generated:
            show_title(f"{trial.title}:")
            _show_figures(
                "Kind",
                [("all", len(trial.results), trial.figures())]
                + [(kind, len(one.results), one.figures()) for kind, one in trial.kinds().items()],
            )
    if len(labelled) < len(trials):
        terminal.tell(FLATTERS)
    for trial in trials:
        _show_comparisons(trial)
        _show_worst(trial, worst)


def as_json(trial: Trial, worst: int) -> dict[str, Any]:
    """All measurements of one set."""
    return {
        "set": trial.name,
        "generated": trial.is_generated,
        **({"warning": FLATTERS} if trial.is_generated else {}),
        **_measured_as_json(trial),
        "kinds": {kind: _measured_as_json(one) for kind, one in trial.kinds().items()},
        "confidence": msgspec.to_builtins(trial.confidence),
        "worst": [
            {
                "item": hard.item,
                "queries": hard.queries,
                trial.measures.graded_by: round(hard.mean, 4),
                "example": {
                    "id": hard.example.query.id,
                    "query": hard.example.query.text,
                    "right": hard.example.query.grades,
                    "found": hard.example.found,
                },
            }
            for hard in trial.hardest(worst)
        ],
    }


def _measured_as_json(trial: Trial) -> dict[str, Any]:
    return {
        "queries": len(trial.results),
        "figures": {figure.name: _rounded(figure) for figure in trial.figures()},
        "against": {
            changed: {one.name: _rounded(one) for one in row}
            for changed, row in trial.comparisons().items()
        },
    }


def _rounded(figure: Figure | Comparison) -> dict[str, float]:
    fields = msgspec.structs.asdict(figure)
    return {name: round(value, 4) for name, value in fields.items() if name != "name"}


def _show_figures(first: str, rows: Sequence[tuple[str, int, Sequence[Figure]]]) -> None:
    names = [figure.name for figure in rows[0][2] if figure.name in SHOWN]
    terminal.show_table(
        (first, "Queries", *names),
        [
            (name, f"{count:,}", *(_cell(figure) for figure in row if figure.name in SHOWN))
            for name, count, row in rows
        ],
        right=("Queries", *names),
        styles={first: lambda _: "bold cyan"},
    )


def show_reliability(title: str, first: str, rows: Iterable[tuple[str, Reliability]]) -> None:
    """Show a titled table of the reliability of confidence; ``first`` heads the rows' names."""
    show_title(title)
    names = Reliability.__struct_fields__
    terminal.show_table(
        (first, *names),
        [(of, *(f"{getattr(one, name):.3f}" for name in names)) for of, one in rows],
        right=names,
        styles={first: lambda _: "bold cyan"},
    )


def _cell(figure: Figure) -> str:
    return f"{figure.mean:.3f} ({figure.low:.3f}–{figure.high:.3f})"  # noqa: RUF001 - a range


def _show_comparisons(trial: Trial) -> None:
    for changed, row in trial.comparisons().items():
        show_title(f"{trial.title}, {changed} against the active settings:")
        terminal.show_table(
            ("Figure", "Before", "After", "Difference", "Better", "Worse", "p"),
            [
                (
                    one.name,
                    f"{one.before:.3f}",
                    f"{one.after:.3f}",
                    f"{one.difference:+.3f} ({one.low:+.3f} to {one.high:+.3f})",
                    f"{one.better:,}",
                    f"{one.worse:,}",
                    f"{one.p:.3f}" if one.p >= 0.001 else "<0.001",
                )
                for one in row
            ],
            right=("Before", "After", "Better", "Worse", "p"),
            styles={"Figure": lambda _: "bold cyan"},
        )


def _show_worst(trial: Trial, limit: int) -> None:
    items = trial.hardest(limit)
    if not items:
        return
    show_title(f"{trial.title}, the worst items:")
    terminal.show_table(
        ("Item", "Queries", trial.measures.graded_by, "Example, and its hits"),
        [
            (
                hard.item,
                f"{hard.queries:,}",
                f"{hard.mean:.2f}",
                f"{hard.example.query.text} → "
                f"{', '.join(hard.example.found[:MAX_FOUND]) or 'nothing'}",
            )
            for hard in items
        ],
        right=("Queries", trial.measures.graded_by),
        styles={"Item": lambda _: "bold cyan"},
    )


def show_title(text: str) -> None:
    """Show a title after an empty line."""
    terminal.say()
    terminal.tell(text)
