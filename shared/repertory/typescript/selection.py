"""The choice of tools for a module."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from repertory.catalogue.item import Kind
from repertory.errors import UnknownItemError, UsageError
from repertory.index.keywords.document import Entry
from repertory.text import listed, normalized

MAX_TOOLS = 2_000  # per module
MAX_NAMES_SHOWN = 10  # unknown names in a message


def select_tools(entries: Sequence[Entry], names: Collection[str]) -> list[str]:
    """Return the ids of the named tools and of the named servers' tools; without names, all ids.

    Names match in any Unicode normalization.

    Raises:
        UnknownItemError: A name is neither a server's nor a tool's.
        UsageError: There are more than ``MAX_TOOLS``.
    """
    tools = [entry for entry in entries if entry.kind is Kind.TOOL]
    if names:
        known = _known(tools)
        if unknown := [repr(name[:200]) for name in names if _composed(name) not in known]:
            raise UnknownItemError(f"There is no server and no tool {_listed(unknown)}.")
        wanted = set(map(_composed, names))
        tools = [one for one in tools if wanted & {_composed(one.id), _composed(one.server)}]
    if len(tools) > MAX_TOOLS:
        raise UsageError(
            f"These are {len(tools):,} tools, and a module holds {MAX_TOOLS:,} at most; name the "
            "servers or tools that are wanted."
        )
    return [tool.id for tool in tools]


def names_in(entries: Sequence[Entry], values: Iterable[str]) -> list[str]:
    """The names in values, each of which is a known name or a comma-separated list; each once."""
    known = _known(entries)
    parts = ([one] if _composed(one) in known else listed(one) for one in values)
    return list(dict.fromkeys(chain.from_iterable(parts)))


def _known(tools: Iterable[Entry]) -> set[str]:
    """The ids of tools, and the names of their servers."""
    return {_composed(name) for tool in tools for name in (tool.id, tool.server)}


def _composed(name: str) -> str:
    return normalized("NFC", name)


def _listed(names: list[str]) -> str:
    shown = names[:MAX_NAMES_SHOWN]
    more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return " or ".join(shown) + more
