"""Names as people type them: split into words, or reduced to letters and digits."""

import re
import unicodedata
from itertools import pairwise

from repertory.text import normalized, remembered

# Marks that belong to the letter before them (vowel signs, accents); `\w` does not match them.
MARKS = "".join(c for c in map(chr, range(0x300, 0x1CFF)) if unicodedata.category(c)[0] == "M")
MARKS += "\u3099\u309a"  # of kana

# Scripts written without spaces: Han, kana, Hangul, Thai, Lao, Khmer, Myanmar.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003134f"
)

# Boundaries inside an identifier: readFile, HTTPServer, v2Beta, utf8. Plurals have none: URLs.
_PLURAL = "[A-Z]s(?![A-Za-z])|[B-HJ-Z]s(?![a-z])"  # "Is" and "As" may be words
_INSIDE = re.compile(
    rf"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?!{_PLURAL})"
    r"|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)
_SEPARATORS = re.compile(rf"(?:[^\w{MARKS}]|_)+")
_JOINED = re.compile(r"[^\W_][-_./:]+[^\W_]")
# Accents and vowel points that are often left out: Latin, Greek and Cyrillic; Hebrew; Arabic.
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]+")
_PLAIN = str.maketrans({"\u0131": "i", "ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe"})
_SIGNS = re.compile(r"(?<=[^\W\d_])(#|\+\+)(?![#+])")
_NOT_IN_ASCII_NAMES = {code: None for code in range(128) if not chr(code).isalnum()}


@remembered  # a short query is compared with the names of all its results
def split_name(name: str) -> str:
    """Split at separators, case changes and digits: ``getHTTPUrl_v2`` → ``get http url v 2``."""
    if name.isascii() and name.isalpha() and (name.islower() or name.istitle() or name.isupper()):
        return name.lower()  # most words in texts; 10 times faster
    text = normalized("NFKC", name)
    if text.isascii() or text[1:].lower() == text[1:]:  # most other words
        divided = _INSIDE.sub(" ", text)
    else:
        ends = [found.start() for found in _INSIDE.finditer("".join(map(_with_case, text)))]
        divided = " ".join(text[start:end] for start, end in pairwise([0, *ends, len(text)]))
    return " ".join(_SEPARATORS.sub(" ", divided).lower().split())


def _with_case(letter: str) -> str:
    """An ASCII letter in the same case as a letter, because ``_INSIDE`` matches only ASCII."""
    if letter.isascii() or not letter.isalpha():
        return letter
    return "A" if letter.isupper() else "a" if letter.islower() else letter


def has_separators(word: str) -> bool:
    """Whether a word has separators between its parts, like an identifier: ``read_file``."""
    return _JOINED.search(word) is not None


def compact_name(name: str) -> str:
    """A name without case, accents and separators: ``Read_File`` and ``readFile`` are equal.

    The signs of ``C++`` and ``F#`` are kept after a letter, and ``.NET`` becomes ``dotnet``. A name
    that consists only of separators is unchanged: ``++``.
    """
    if name.strip().lower() == ".net":
        return "dotnet"
    if "#" in name or "++" in name:
        parts = _SIGNS.split(name)  # every second part is a sign
        if len(parts) > 1:
            return "".join(
                one if place % 2 else _without_separators(one) for place, one in enumerate(parts)
            )
    return _without_separators(name) or name.strip()


def _without_separators(name: str) -> str:
    if name.isascii():
        return name.lower().translate(_NOT_IN_ASCII_NAMES)
    return _SEPARATORS.sub("", folded(name))


def folded(text: str) -> str:
    """A text without case and accents: ``Café`` equals ``cafe``, and ``ß`` equals ``ss``."""
    if text.isascii():
        return text.lower()
    decomposed = normalized("NFKD", text.casefold())
    return normalized("NFKC", _ACCENTS.sub("", decomposed)).translate(_PLAIN)


def signs(text: str) -> str:
    """The signs of C#, F# and C++ in a text: different signs are never a misspelling."""
    return "".join(_SIGNS.findall(text)) if "#" in text or "++" in text else ""


def digits(text: str) -> str:
    """The digits of a text: a different number is never a misspelling."""
    return "".join(filter(str.isdigit, text))
