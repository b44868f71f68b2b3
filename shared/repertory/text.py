"""Text as it may be shown and stored: without control characters, on one line, cut to a length."""

import re

# Control characters but tab and newline, which may steer a terminal, and lone surrogates, which
# do not encode.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without control characters and lone surrogates; tabs and newlines stay."""
    return text if is_clean(text) else _UNFIT.sub("", text)


def is_clean(text: str) -> bool:
    """Whether ``clean`` would leave the text as it is."""
    return text.isprintable() or _UNFIT.search(text) is None


def one_line(text: str) -> str:
    """The cleaned text with every run of white space as one space."""
    return " ".join(clean(text).split())


def cut(text: str, length: int) -> str:
    """At most so many characters of the text, cut between words and marked with an ellipsis."""
    if len(text) <= length:
        return text
    kept = text[: length - 1]
    at_word = kept.rfind(" ")
    return kept[: at_word if at_word > length // 2 else None].rstrip() + "…"
