"""What is said to a model in words: nothing that an author wrote can pass for more than a line."""

from repertory.search.answer import Answer, Hit
from repertory.text import cut, one_line

LONGEST = 400  # characters of one text


def line(text: str) -> str:
    """A text on one line, cut where it is very long."""
    return cut(one_line(text), LONGEST)


def described(hit: Hit) -> str:
    """A hit in a few lines: what it is, what it does, where it is, and what of it matched."""
    text = line(hit.description)
    lines = [f"{hit.kind.title()} {line(hit.name)}" + (f": {text}" if text else "")]
    lines.append(f"Id: {one_line(hit.id)}")
    if hit.path:
        lines.append(f"File: {one_line(hit.path)}")
    if hit.matched_in:
        lines.append(f"Section: {line(hit.matched_in)}")
    return "\n".join(lines)


def nothing(answer: Answer) -> str:
    """That nothing was found, and what to try."""
    below = f"; the best is {answer.best_below:.2f}" if answer.best_below else ""
    lower = f" or a threshold lower than {answer.threshold:g}" if answer.threshold else ""
    return f"No tools found matching query. Try other words{lower}{below}."


def degraded(answer: Answer) -> str:
    """That an arm of the search is missing, and why; empty if none is."""
    if not answer.degraded:
        return ""
    return f"Degraded, answered by {answer.mode} alone: {line(answer.degraded)}"
