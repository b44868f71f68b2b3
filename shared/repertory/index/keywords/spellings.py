"""British and American spellings of one word: ``colour`` and ``color``."""

import re
from collections.abc import Iterator

_PAIRS = (
    ("our", "or"),
    ("is", "iz"),
    ("ys", "yz"),
    ("tre", "ter"),
    ("logue", "log"),
    ("ence", "ense"),
    ("grey", "gray"),
)
_OTHER = dict(_PAIRS) | {american: british for british, american in _PAIRS}
_SPELT = re.compile(
    r"(?<=[a-z]{2})(?:our|or|is|iz|ys|yz|tre|ter|logue|log|ence|ense)"
    r"(?=$|s$|[eiy]|ful|able|hood|less)"
    r"|^gr[ea]y"
)


def other_spellings(word: str) -> Iterator[str]:
    """Possible other spellings of a word in lower case; most of them are not words."""
    for found in _SPELT.finditer(word):
        yield word[: found.start()] + _OTHER[found[0]] + word[found.end() :]
