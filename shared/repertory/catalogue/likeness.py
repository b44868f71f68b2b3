"""Tools whose names equal those of another server's tools, or differ from them by one letter."""

from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import repeat
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import Kind
from repertory.catalogue.names import compact_name

MIN_LENGTH = 6  # of names that are compared letter by letter
MAX_LENGTH = 64
MAX_COMPARED = 20  # names compared with each name, of those that share all letters except one
MAX_FOUND = 100

CHECK = "check that both are wanted"

Tool = tuple[str, str, str]  # id, server, name


class Named(Protocol):
    """The fields of an item that are compared."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def kind(self) -> Kind:
        """Its kind."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def server(self) -> str:
        """The server of a tool."""
        ...


def likenesses(items: Iterable[Named]) -> tuple[dict[str, str], int]:
    """Find the tools that are easily confused with another server's.

    The later tool of a pair is reported, each tool once. Case, accents and separators are ignored.

    Returns:
        Messages about the first ``MAX_FOUND`` tools, by id, and the number of further tools.
    """
    tools = tuple((one.id, one.server, one.name) for one in items if one.kind is Kind.TOOL)
    found, others = _found(tools)
    return dict(found), others


@lru_cache(maxsize=4)  # most scans change no name
def _found(tools: tuple[Tool, ...]) -> tuple[tuple[tuple[str, str], ...], int]:
    if len({server for _, server, _ in tools}) < 2:
        return (), 0
    found: dict[str, str] = {}
    others: set[str] = set()
    for say, pairs in ((_same_name, _same(tools)), (_near_name, _near(tools))):
        for tool, other in pairs:
            if len(found) < MAX_FOUND:
                found.setdefault(tool, say(tool, other))
            elif tool not in found:
                others.add(tool)
    return tuple(found.items()), len(others)


def _same_name(tool: str, other: str) -> str:
    return f"{tool} has the same name as {other}, a tool of another server; {CHECK}."


def _near_name(tool: str, other: str) -> str:
    similar = f"The name of {tool} differs by one letter from that of {other}"
    return f"{similar}, of another server; {CHECK}."


def _same(tools: tuple[Tool, ...]) -> Iterator[tuple[str, str]]:
    first: dict[str, Tool] = {}
    for tool in tools:
        other = first.setdefault(compact_name(tool[2]), tool)
        if other[1] != tool[1]:
            yield tool[0], other[0]


def _near(tools: tuple[Tool, ...]) -> list[tuple[str, str]]:
    """Pairs of tools whose names differ by one letter that is added, removed or replaced.

    Two such names become equal if the right letter is removed from one or both. The hashes of all
    shortened names are sorted, because a dictionary takes gigabytes for a million tools.
    """
    names = [compact_name(name) for _, _, name in tools]
    hashes, places = array("q"), array("i")
    for place, name in enumerate(names):
        if MIN_LENGTH <= len(name) <= MAX_LENGTH:
            shorter = {name, *(name[:k] + name[k + 1 :] for k in range(len(name)))}
            hashes.extend(map(hash, shorter))
            places.extend(repeat(place, len(shorter)))
    pairs = {
        (later, earlier)
        for group in _equal(np.array(hashes), np.array(places))
        for number, later in enumerate(group)
        for earlier in group[: min(number, MAX_COMPARED)]
        if tools[later][1] != tools[earlier][1] and is_near(names[later], names[earlier])
    }
    return [(tools[later][0], tools[earlier][0]) for later, earlier in sorted(pairs)]


def _equal(hashes: NDArray[np.int64], places: NDArray[np.int32]) -> Iterator[list[int]]:
    """The places of each hash that occurs more than once, ascending."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    inner = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    bounds = np.concatenate(([0], inner, [len(ordered)]))
    sizes = np.diff(bounds)
    for start, size in zip(bounds[:-1][sizes > 1], sizes[sizes > 1], strict=True):
        yield places[order[start : start + size]].tolist()


def is_near(name: str, other: str) -> bool:
    """Whether two names differ by one letter that is added, removed or replaced."""
    if name == other or abs(len(name) - len(other)) > 1:
        return False
    start = next(
        (k for k, (a, b) in enumerate(zip(name, other, strict=False)) if a != b),
        min(len(name), len(other)),
    )
    one, two = name[start:], other[start:]
    return one[1:] == two[1:] or one[1:] == two or one == two[1:]
