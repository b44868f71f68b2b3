"""What TypeScript is written with: identifiers, keys, quoted text and comments, of any text."""

import json
import re
import unicodedata

_PLAIN_KEY = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_LETTERS = ("L", "Mn", "Mc")  # general categories that identifiers may hold
# Every compiler knows the letters of so old a Unicode, whatever its own is.
_category = unicodedata.ucd_3_2_0.category


class Names:
    """Hands out identifiers, no one twice."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        """The identifier that is wanted, numbered if it is taken."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}{number}"
        self._taken.add(name)
        return name


def pascal(text: str) -> str:
    """A name as a part of a type's: ``read_file`` → ``ReadFile``; it may be empty or a number."""
    return "".join(word[0].upper() + word[1:] for word in _words(text))


def camel(text: str) -> str:
    """A name as that of a value: ``My server`` → ``myServer``; it may be empty or a number."""
    first, *others = _words(text) or [""]
    first = first.lower() if first.isupper() else first[:1].lower() + first[1:]
    return first + pascal(" ".join(others))


def identifier(letters: str, fallback: str) -> str:
    """Such a name as an identifier: one that nothing is left of is the fallback."""
    if not letters:
        return fallback
    return letters if _category(letters[0])[0] == "L" else f"_{letters}"


def quoted(value: object) -> str:
    """A JSON value as an expression, on one line and readable, what cannot be seen escaped."""
    written = json.dumps(value, ensure_ascii=False)
    if written.isprintable():
        return written
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in written)


def key(name: str) -> str:
    """A property's name, quoted unless it is a plain one."""
    return name if _PLAIN_KEY.fullmatch(name) else quoted(name)


def comment(text: str) -> str:
    """A doc comment of the text's lines, and a newline; empty for a text with none.

    Where the text holds an ``@``, the comment ends on a line of its own: compilers obey
    ``@ts-expect-error`` and its like on the last one.
    """
    lines = [_shown(line).rstrip() for line in text.replace("\t", "    ").splitlines()]
    told = "\n".join(lines).strip("\n").replace("*/", "*\\/")
    if "\n" in told or "@" in told:
        starred = (f" * {line}".rstrip() + "\n" for line in told.split("\n"))
        return f"/**\n{''.join(starred)} */\n"
    return f"/** {told.strip()} */\n" if told else ""


def _shown(line: str) -> str:
    return "".join(filter(str.isprintable, line))


def _words(text: str) -> list[str]:
    """The runs of letters and digits."""
    kept = (one if _is_of_a_word(one) else " " for one in unicodedata.normalize("NFC", text))
    return "".join(kept).split()


def _is_of_a_word(one: str) -> bool:
    return one.isalnum() if one.isascii() else _category(one).startswith(_LETTERS)
