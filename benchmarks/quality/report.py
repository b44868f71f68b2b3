"""Format the report as Markdown: figures and their targets."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

Figure = Mapping[str, float]  # ``mean``, ``low`` and ``high``, 0…1, as in the JSON of `eval`


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A required and a measured percentage.

    Attributes:
        what: A description of the figure.
        asked: The required percentage.
        measured: The measured percentage.
        at_least: Whether the target is a minimum rather than a maximum.
    """

    what: str
    asked: float
    measured: float
    at_least: bool = True

    @property
    def reached(self) -> bool:
        """Whether the target is reached, to the printed precision."""
        measured, asked = round(self.measured, 1), round(self.asked, 1)
        return measured >= asked if self.at_least else measured <= asked


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the report: its title, its Markdown and its targets."""

    title: str
    text: str
    targets: Sequence[Target] = ()


def markdown(parts: Sequence[Part], heading: str) -> str:
    """The whole report, with all targets before the parts."""
    targets = [target for part in parts for target in part.targets]
    reached = sum(target.reached for target in targets)
    summary = [
        (
            target.what,
            f"{'≥' if target.at_least else '≤'} {target.asked:.1f}",
            f"{target.measured:.1f}",
            "reached" if target.reached else "**missed**",
        )
        for target in targets
    ]
    shown = [
        heading,
        f"## Targets: {reached} of {len(targets)} reached",
        table(("What", "Asked", "Measured", ""), summary),
        *(f"## {part.title}\n\n{part.text}" for part in parts),
    ]
    return "\n\n".join(shown) + "\n"


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table in which all columns except the first are right-aligned."""
    lines = [head, ["---", *("--:" for _ in head[1:])], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.1f}"


def ranged(figure: Figure) -> str:
    """A figure as a percentage with its interval."""
    low, high = percent(figure["low"]), percent(figure["high"])
    return f"{percent(figure['mean'])} ({low}–{high})"  # noqa: RUF001 - a range
