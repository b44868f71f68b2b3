"""Sentences for models. Text by authors is kept on its line."""

from repertory.catalogue.safety import DESTRUCTIVE
from repertory.notices import NO_ADVICE
from repertory.search.answer import Answer, Hit, rounded_down
from repertory.text import cut, one_line

MAX_LINE_LENGTH = 400  # characters of one text


def line(text: str) -> str:
    """A text on one line, cut to ``MAX_LINE_LENGTH``."""
    return cut(one_line(text), MAX_LINE_LENGTH)


def described(hit: Hit) -> str:
    """Describe a hit in a few lines: kind, name, description, id, file, section and duplicates."""
    text = line(hit.description)
    lines = [f"{hit.kind.title()} {line(hit.name)}" + (f": {text}" if text else "")]
    lines.append(f"Id: {one_line(hit.id)}")
    if hit.path:
        lines.append(f"File: {one_line(hit.path)}")
    if hit.matched_in:
        lines.append(f"Section: {line(hit.matched_in)}")
    if hit.duplicates:
        lines.append(f"The same: {', '.join(map(one_line, hit.duplicates))}")
    return "\n".join(lines)


def reason(hit: Hit) -> str:
    """The reason of a hit, with the shadowing item and the copies.

    It starts with a warning if the server says that the tool may delete or overwrite data.
    """
    text = hit.reason
    if hit.kind == "tool" and DESTRUCTIVE in hit.tags:
        text = f"({DESTRUCTIVE}) {text}"
    if hit.shadowed_by:
        text += f" (shadowed by {hit.shadowed_by})"
    return f"{text} ({also_as(hit)})" if hit.duplicates else text


def also_as(hit: Hit) -> str:
    """Name the first copy of a hit, and count the others."""
    first, *others = hit.duplicates
    return f"also as {one_line(first)}" + (f" and {len(others)} more" if others else "")


def nothing(answer: Answer) -> str:
    """Say that nothing was found, and suggest what to try."""
    if said := [one for one in answer.notices if one in NO_ADVICE]:
        return said[0]
    closest, confidence = one_line(answer.closest), f"{rounded_down(answer.best_below):.2f}"
    below = f"; the closest is {closest} with {confidence}" if closest else ""
    lower = f" or a threshold lower than {answer.threshold:g}" if answer.threshold else ""
    return f"No items found matching query. Try other words{lower}{below}."


def notices(answer: Answer) -> list[str]:
    """The notices of an answer, one line each."""
    return [line(one) for one in answer.notices if one not in NO_ADVICE]


def degraded(answer: Answer) -> str:
    """Say which part of the search is unavailable and why; empty if none is."""
    if not answer.degraded:
        return ""
    return f"Degraded, answered by {answer.mode} alone: {line(answer.degraded)}"
