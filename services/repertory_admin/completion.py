"""Shell completion of the ids, sources, servers and tags of the indexed items.

A shell treats a completed value as if it had been typed, and zsh evaluates the list of values. So
values that a shell may read as a command or an option are not offered.
"""

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from repertory.errors import RepertoryError
from repertory_admin import terminal
from repertory_admin.target import target_of

if TYPE_CHECKING:
    from repertory.index.keywords.document import Entry

_PLAIN = re.compile(r"\w[\w./:@+-]*(?: \w[\w./:@+-]*)*")


def _completing(values: "Callable[[Entry], Iterable[str]]") -> Callable[[str], list[str]]:
    """A completion function for some values of the items; empty while they cannot be read."""

    def complete(incomplete: str) -> list[str]:
        terminal.be_quiet(quiet=True)  # output would appear in the line being typed
        try:
            with target_of({}).open() as backend:
                found = {value for entry in backend.entries() for value in values(entry)}
        except (RepertoryError, OSError):  # such as a deleted working directory
            return []
        return sorted(one for one in found if one.startswith(incomplete) and _PLAIN.fullmatch(one))

    return complete


names = _completing(lambda entry: [entry.id, entry.name])
sources = _completing(lambda entry: [entry.source])
servers = _completing(lambda entry: [entry.server])
tags = _completing(lambda entry: entry.tags)
tools = _completing(lambda entry: [entry.id, entry.server] if entry.kind == "tool" else [])
