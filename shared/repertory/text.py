"""Make text safe to show and store: remove unfit characters, join lines, limit the length."""

import hmac
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Literal, TypeVar

# The characters that change the direction of text and so can disguise it, to be placed inside a
# character class of a regular expression. Right-to-left scripts need some of them.
DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"

# Characters that may be unfit. Control characters except tab and newline can control a terminal,
# and lone surrogates cannot be encoded. Models read invisible characters, which people do not see.
# Direction marks can disguise text.
_SUSPECTS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_RUN = re.compile(f"[{_SUSPECTS}]+")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")  # of ASCII

# The suspects that are legitimate after certain characters.
_FLAG = re.compile("[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f")
_FITTING = re.compile(
    "(?:\\A|[^\u061c\u200e\u200f])[\u061c\u200e\u200f]"  # beside text from right to left
    "|(?!\u061c)(?:"
    "[\u0590-\u1fff\u2190-\U000dffff][\u200b-\u200d]"  # of scripts, of emoji
    "|[\u1820-\u18aa][\u180b-\u180d\u180f]"  # of Mongolian
    "|[#*0-9\u00a9-\u1fff\u2030-\ufdff\ufe10-\U000dffff][\ufe0e\ufe0f]"  # a sign as text or emoji
    "|[\u1000-\u1fff\u2030-\ufdff\ufe10-\U000dffff][\ufe00-\ufe0d]"  # variants of letters and signs
    "|[\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af][\U000e0100-\U000e01ef]"  # of ideographs
    ")"
)

_MAX_MARKS = 30  # in a row; no language has more: "Stream-Safe Text Format" in UAX #15
_LATER_MARKS = "\u0f73\u0f75\u0f81\uff9e\uff9f"  # become marks when decomposed
# A run long enough to have more than ``_MAX_MARKS``. No mark is a letter, except the two of kana.
_SIGNS = re.compile(r"[\W\uff9e\uff9f]{31,}")

_HEX = "[0-9a-fA-F]{2}"
# Splits JSON into text with whole characters and (the group) escapes of lone surrogates.
_ESCAPES = re.compile(
    rf"(?:[^\\]++|\\(?!u[dD][89a-fA-F]{_HEX})."
    rf"|\\u[dD][89abAB]{_HEX}\\u[dD][c-fC-F]{_HEX})++"
    rf"|(\\u[dD][89a-fA-F]{_HEX})",
    re.DOTALL,
)

UNFIT = "control or invisible characters"  # in messages about what ``clean`` removed

MAX_REMEMBERED = 5_000  # texts whose results ``remembered`` keeps
MAX_REMEMBERED_LENGTH = 100  # characters of each

T = TypeVar("T")

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def clean(text: str) -> str:
    """Remove the characters that people are not meant to see.

    These are control characters (except tabs and newlines), lone surrogates, tags (except those of
    an emoji flag), marks that force the direction of text, and invisible characters. A single
    joiner, zero-width space or variation selector is kept where a script or an emoji needs it, and
    so is a single mark that only suggests a direction.
    """
    if text.isascii():  # most texts
        return text if text.isprintable() else _CONTROL.sub("", text)
    return _RUN.sub(_fit, text)


def with_whole_characters(json: bytes) -> bytes:
    """JSON with each escape of a lone surrogate replaced by the replacement character.

    JavaScript can cut an emoji in half, and writes the half as an escape that strict parsers
    refuse. The length is unchanged.
    """
    text = json.decode("latin-1")  # any bytes; the escapes are ASCII
    return _ESCAPES.sub(lambda piece: r"\ufffd" if piece[1] else piece[0], text).encode("latin-1")


def is_clean(text: str) -> bool:
    """Whether ``clean`` would not change the text."""
    return clean(text) == text


def is_unicode(text: str) -> bool:
    """Whether a text can be stored; a file name may be invalid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fit(found: re.Match[str]) -> str:
    """The characters of a run of suspects that are kept, given the character before each."""
    run, last = found[0], found.string[max(0, found.start() - 1) : found.start()]
    flag = _FLAG.match(run) if last == "\N{WAVING BLACK FLAG}" else None
    kept = flag[0] if flag else ""
    for character in run[len(kept) :]:
        if _FITTING.fullmatch((kept[-1:] or last) + character):
            kept += character
    return kept


def normalized(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """The text in a normal form of Unicode, with at most 30 marks in a row.

    Python sorts the marks of a letter in quadratic time while it holds the interpreter lock.
    """
    if text.isascii():
        return text
    if len(text) > _MAX_MARKS:
        text = _SIGNS.sub(_with_few_marks, text)
    return unicodedata.normalize(form, text)


def _with_few_marks(found: re.Match[str]) -> str:
    """A run of signs with at most 30 marks in a row."""
    kept, marks = [], 0
    for sign in found[0]:
        is_mark = unicodedata.combining(sign) or sign in _LATER_MARKS
        marks = marks + 1 if is_mark else 0
        if marks <= _MAX_MARKS:
            kept.append(sign)
    return "".join(kept)


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


def listed(text: str) -> list[str]:
    """The comma-separated parts of a text, stripped, without empty ones."""
    return [part.strip() for part in text.split(",") if part.strip()]


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things in words: ``1 item``, ``2,000 items``; ``many`` is an irregular plural."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def ago(seconds: float, least: int = 1) -> str:
    """A span of time in words, in its largest unit; ``just now`` below ``least`` seconds."""
    for length, unit in _UNITS:
        if seconds >= max(length, least):
            return f"{counted(int(seconds // length), unit)} ago"
    return "just now"


def remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """A pure function of one text that remembers its results for short texts.

    Caching long texts, such as encoded data, would cost too much memory for the time it saves.
    """
    known = lru_cache(maxsize=MAX_REMEMBERED)(function)

    @wraps(function)
    def remembering(text: str) -> T:
        return known(text) if len(text) <= MAX_REMEMBERED_LENGTH else function(text)

    return remembering


def is_same_secret(one: str, other: str) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def media_type_of(header: str) -> str:
    """The media type in a ``Content-Type``, in lower case and without parameters."""
    return header.partition(";")[0].strip().lower()
