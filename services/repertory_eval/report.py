"""Reports the trials of ``repertory eval`` as tables or as JSON."""

from collections.abc import Sequence
from typing import Any

import msgspec

from repertory_admin import terminal
from repertory_eval.compare import Comparison
from repertory_eval.judged import Judged, by_tag, judge
from repertory_eval.measure import Figure
from repertory_eval.trial import Trial

FLATTERS = "These queries are generated from the searched texts, which flatters the figures."
# The figures that fit in a table; the JSON has all.
SHOWN = ("recall@1", "recall@5", "nDCG@10", "hit@1", "hit@5", "hidden")
# The columns for judged queries, with the attributes of ``Judged`` that they show.
JUDGED = {
    name.replace("_", " "): name
    for name in Judged.__struct_fields__
    if name not in ("queries", "answerable", "pairs")
}
MAX_FOUND = 3


def show(trials: Sequence[Trial], worst: int) -> None:
    """Show tables of the figures, the effects of other settings, and the worst items."""
    if labelled := [trial for trial in trials if not trial.is_generated]:
        _show_figures(
            "Set",
            [
                (trial.name, len(trial.results), trial.figures())
                for trial in labelled
                if trial.results
            ],
        )
        for trial in labelled:
            _show_judged(trial)
    for trial in trials:
        if trial.is_generated:
            _show_title(f"{trial.title}:")
            _show_figures(
                "Kind",
                [("all", len(trial.results), trial.figures())]
                + [(kind, len(one.results), one.figures()) for kind, one in trial.kinds().items()],
            )
            if len(sources := trial.sources()) > 1:
                terminal.say()
                _show_figures(
                    "Source",
                    [(name, len(one.results), one.figures()) for name, one in sources.items()],
                )
    if len(labelled) < len(trials):
        terminal.show_text(FLATTERS)
    for trial in trials:
        _show_comparisons(trial)
        _show_worst(trial, worst)


def as_json(trial: Trial, worst: int) -> dict[str, Any]:
    """All measurements of one trial."""
    return {
        "set": trial.name,
        "generated": trial.is_generated,
        **({"warning": FLATTERS} if trial.is_generated else {}),
        **_measured_as_json(trial),
        "kinds": {kind: _measured_as_json(one) for kind, one in trial.kinds().items()},
        "sources": {name: _measured_as_json(one) for name, one in trial.sources().items()},
        "judged": _judged_as_json(trial),
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


def _judged_as_json(trial: Trial) -> dict[str, Any] | None:
    """The figures of the judged queries, overall and by tag; None if there are no such queries."""
    if not trial.judged:
        return None
    kinds = msgspec.to_builtins(by_tag(trial.judged))
    return {**msgspec.to_builtins(judge(trial.judged)), "kinds": kinds}


def _rounded(figure: Figure | Comparison) -> dict[str, float | None]:
    fields = msgspec.structs.asdict(figure)
    del fields["name"]
    return {name: None if value is None else round(value, 4) for name, value in fields.items()}


def _show_figures(first: str, rows: Sequence[tuple[str, int, Sequence[Figure]]]) -> None:
    if not rows:
        return
    measured = [{figure.name: _cell(figure) for figure in row} for _, _, row in rows]
    names = [name for name in SHOWN if any(name in row for row in measured)]
    terminal.show_table(
        (first, "Queries", *names),
        [
            (name, f"{count:,}", *(cells.get(one, "") for one in names))
            for (name, count, _), cells in zip(rows, measured, strict=True)
        ],
        right=("Queries", *names),
        styles={first: lambda _: "bold cyan"},
    )


def _show_judged(trial: Trial) -> None:
    """Show how well confidence predicts the grades of judged pairs, and which of them are shown."""
    if not trial.judged:
        return
    _show_title(f"{trial.name}, judged pairs: the confidence, and what is shown:")
    terminal.show_table(
        ("Queries", *JUDGED),
        [
            (name, *(_share(getattr(one, figure)) for figure in JUDGED.values()))
            for name, one in [("all", judge(trial.judged)), *by_tag(trial.judged).items()]
        ],
        right=tuple(JUDGED),
        styles={"Queries": lambda _: "bold cyan"},
    )


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.3f}"


def _cell(figure: Figure) -> str:
    return f"{figure.mean:.3f} ({figure.low:.3f}–{figure.high:.3f})"  # noqa: RUF001 - a range


def _show_comparisons(trial: Trial) -> None:
    for changed, row in trial.comparisons().items():
        _show_title(f"{trial.title}, {changed} against the active settings:")
        terminal.show_table(
            ("Figure", "Before", "After", "Difference", "Better", "Worse", "p"),
            [
                (
                    one.name,
                    f"{one.before:.3f}",
                    f"{one.after:.3f}",
                    _difference(one),
                    f"{one.better:,}",
                    f"{one.worse:,}",
                    f"{one.p:.3f}" if one.p >= 0.001 else "<0.001",
                )
                for one in row
            ],
            right=("Before", "After", "Better", "Worse", "p"),
            styles={"Figure": lambda _: "bold cyan"},
        )


def _difference(one: Comparison) -> str:
    if one.low is None or one.high is None:
        return f"{one.difference:+.3f}"
    return f"{one.difference:+.3f} ({one.low:+.3f} to {one.high:+.3f})"


def _show_worst(trial: Trial, limit: int) -> None:
    items = trial.hardest(limit)
    if not items:
        return
    _show_title(f"{trial.title}, the worst items:")
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


def _show_title(text: str) -> None:
    """Show a title after an empty line."""
    terminal.say()
    terminal.show_text(text)
