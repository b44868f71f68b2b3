"""TypeScript identifiers, property keys, string literals and comments, made from any text."""

import json
import re
import unicodedata

from repertory.text import normalized

_PLAIN_KEY = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_LETTERS = ("L", "Mn", "Mc")  # general categories allowed in identifiers
# All compilers know the letters of this old Unicode version.
_category = unicodedata.ucd_3_2_0.category


class IdentifierPool:
    """Hands out unique identifiers."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        """Take an identifier, numbered if it is already taken."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}{number}"
        self._taken.add(name)
        return name


def pascal(text: str) -> str:
    """Convert to Pascal case: ``read_file`` → ``ReadFile``; may be empty or start with a digit."""
    return "".join(word[0].upper() + word[1:] for word in _words(text))


def camel(text: str) -> str:
    """Convert to camel case: ``My server`` → ``myServer``; may be empty or start with a digit."""
    first, *others = _words(text) or [""]
    first = first.lower() if first.isupper() else first[:1].lower() + first[1:]
    return first + pascal(" ".join(others))


def identifier(letters: str, fallback: str) -> str:
    """Turn a converted name into an identifier; an empty one becomes the fallback."""
    if not letters:
        return fallback
    return letters if _category(letters[0])[0] == "L" else f"_{letters}"


def quoted(value: object) -> str:
    """Write a JSON value as an expression on one line, with invisible characters escaped."""
    written = json.dumps(value, ensure_ascii=False)
    if written.isprintable():
        return written
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in written)


def key(name: str) -> str:
    """A property name, quoted if necessary."""
    return name if _PLAIN_KEY.fullmatch(name) else quoted(name)


def comment(text: str) -> str:
    """A doc comment and a newline; empty for a blank text.

    If the text contains an ``@``, the comment's last line is empty, because compilers obey
    directives such as ``@ts-expect-error`` there.
    """
    lines = text.replace("\t", "    ").splitlines()
    shown = ("".join(filter(str.isprintable, line)).rstrip() for line in lines)
    body = "\n".join(shown).strip("\n").replace("*/", "*\\/")
    if "\n" in body or "@" in body:
        starred = (f" * {line}".rstrip() + "\n" for line in body.split("\n"))
        return f"/**\n{''.join(starred)} */\n"
    return f"/** {body.strip()} */\n" if body else ""


def _words(text: str) -> list[str]:
    """The runs of letters and digits."""
    kept = (one if _is_of_a_word(one) else " " for one in normalized("NFC", text))
    return "".join(kept).split()


def _is_of_a_word(one: str) -> bool:
    return one.isalnum() if one.isascii() else _category(one).startswith(_LETTERS)
