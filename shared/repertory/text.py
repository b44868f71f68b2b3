"""Text made safe to show and store: without control characters, on one line, cut to a length."""

import re

# Control characters except tab and newline, which can control a terminal, and lone surrogates,
# which cannot be encoded.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def clean(text: str) -> str:
    """Remove control characters and lone surrogates; tabs and newlines stay."""
    return text if is_clean(text) else _UNFIT.sub("", text)


def is_clean(text: str) -> bool:
    """Whether ``clean`` would not change the text."""
    return text.isprintable() or _UNFIT.search(text) is None


def one_line(text: str) -> str:
    """Clean the text and replace every run of white space with one space."""
    return " ".join(clean(text).split())


def cut(text: str, length: int) -> str:
    """Cut the text to a length, between words if possible, and mark the cut with an ellipsis."""
    if len(text) <= length:
        return text
    kept = text[: length - 1]
    at_word = kept.rfind(" ")
    return kept[: at_word if at_word > length // 2 else None].rstrip() + "…"


def ago(seconds: float, least: int = 1) -> str:
    """A span of time in words, in its largest unit; ``just now`` below ``least`` seconds."""
    for length, unit in _UNITS:
        if seconds >= max(length, least):
            number = int(seconds // length)
            return f"{number:,} {unit}{'' if number == 1 else 's'} ago"
    return "just now"
