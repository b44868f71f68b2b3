"""Text files that are no prose, because only other programs read them."""

import re

_NAMES = frozenset({"cmakelists.txt", "conanfile.txt", "robots.txt"})
# A line of a list of packages for pip: a name, perhaps with a version, an option, or an address.
_PACKAGE = re.compile(r"[A-Za-z0-9][\w.-]{0,99}(?:\[[^\]]{0,200}\])?\s{0,9}(?:[=<>!~;@].*)?\\?")
_OPTION = re.compile(r"-[a-z]\s|--[a-z]|git\+|https?://|\./")
# A line that is certainly of such a list, since prose may have lines of one word.
_CERTAIN = re.compile(r"[\w.-]{1,100}(?:\[[a-z]|\s{0,9}(?:[=<>!~]=|[<>]\d))|-[cer]\s|--[a-z]")


def use_of(filename: str, text: str) -> str:
    """What a text file is for, as a clause with "it" as its subject; empty if it may be prose."""
    if filename.lower() in _NAMES:
        return "it is for other programs"
    if not filename.lower().endswith(".txt"):
        return ""
    lines = [line for one in text.splitlines() if (line := one.partition(" #")[0].strip())]
    lines = [line for line in lines if not line.startswith("#")]
    is_list = all(_PACKAGE.fullmatch(line) or _OPTION.match(line) for line in lines)
    return "it lists packages" if is_list and any(map(_CERTAIN.match, lines)) else ""
