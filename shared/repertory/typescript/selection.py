"""Which tools a module is made of."""

from collections.abc import Collection, Sequence

from repertory.catalogue.item import Kind
from repertory.errors import UnknownItemError, UsageError
from repertory.index.keywords.document import Entry

MOST_TOOLS = 2_000  # of one module
MOST_TOLD = 10  # unknown names


def selected(entries: Sequence[Entry], names: Collection[str]) -> list[str]:
    """The ids of the tools of named servers, and of named tools; no names select all.

    Raises:
        UnknownItemError: A name is neither a server's nor a tool's.
        UsageError: There are too many for a module.
    """
    tools = [entry for entry in entries if entry.kind is Kind.TOOL]
    if names:
        known = {name for tool in tools for name in (tool.id, tool.server)}
        if unknown := [repr(name[:200]) for name in names if name not in known]:
            raise UnknownItemError(f"There is no server and no tool {_listed(unknown)}.")
        tools = [tool for tool in tools if tool.id in names or tool.server in names]
    if len(tools) > MOST_TOOLS:
        raise UsageError(
            f"These are {len(tools):,} tools, and a module holds {MOST_TOOLS:,} at most; name the "
            "servers or tools that are wanted."
        )
    return [tool.id for tool in tools]


def _listed(names: list[str]) -> str:
    shown = names[:MOST_TOLD]
    more = f" and {len(names) - MOST_TOLD} more" if len(names) > MOST_TOLD else ""
    return " or ".join(shown) + more
