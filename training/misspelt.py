"""Names as people type them: with an error, unfinished, without separators, or only partly."""

import random
import string

from repertory.catalogue.names import split_name

PREFIX = 0.6  # share of a name's letters in an unfinished name
MIN_LENGTH = 4  # letters; shorter names are not shortened
LAST_WORDS = 2  # number of last words of a partly typed name


def misspelt(name: str, chance: random.Random) -> str:
    """A name with an error, without separators, or shortened."""
    words = split_name(name) or name
    kind = chance.random()
    if kind < 0.35:
        return _edited(words, chance)
    if kind < 0.6:
        return _edited(name, chance)
    if kind < 0.7:
        return words.replace(" ", "")
    if kind < 0.85:
        return name[: max(MIN_LENGTH, int(len(name) * PREFIX))]
    return _edited(" ".join(words.split()[-LAST_WORDS:]), chance)


def _edited(text: str, chance: random.Random) -> str:
    """A text with one letter omitted, doubled or replaced, or two letters swapped."""
    letters = list(text)
    at = chance.randrange(len(letters))
    kind = chance.randrange(4)
    if kind == 0 and len(letters) > MIN_LENGTH:
        del letters[at]
    elif kind == 1 and at + 1 < len(letters):
        letters[at], letters[at + 1] = letters[at + 1], letters[at]
    elif kind == 2:
        letters.insert(at, letters[at])
    else:
        letters[at] = chance.choice(string.ascii_lowercase)
    return "".join(letters)
