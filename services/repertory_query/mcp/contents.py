"""The contents of a catalogue, in words for a model that chooses among tools.

A model reads these words as instructions, so no text of an item is among them: only the names of
sources, which come from the user, and of those the ones that look like names, up to a length.
"""

import re
from collections.abc import Mapping, Sequence

from repertory.catalogue.item import Kind
from repertory.stats import Contents
from repertory.text import counted

MAX_NAMES = 12  # of sources, for each kind

_NAME = re.compile(r"[\w.:/@+-]{1,40}")


def contents(found: Contents) -> str:
    """How many skills, tools and documents there are, and of which sources.

    The text is deterministic, and empty without items. The most frequent names come first.
    """
    kinds = (Kind.SKILL, Kind.TOOL, Kind.DOCUMENT)
    parts = [_kind(kind, found.kinds[kind]) for kind in kinds if found.kinds.get(kind)]
    return f"The catalogue holds {_listed(parts)}." if parts else ""


def _kind(kind: Kind, sources: Mapping[str, int]) -> str:
    count = counted(sum(sources.values()), kind)
    names = _names(sources)
    return f"{count} ({names})" if names else count


def _names(sources: Mapping[str, int]) -> str:
    counts = {name: number for name, number in sources.items() if _NAME.fullmatch(name)}
    most = sorted(counts, key=lambda name: (-counts[name], name))
    more = [f"{len(most) - MAX_NAMES:,} more"] if len(most) > MAX_NAMES else []
    return ", ".join(most[:MAX_NAMES] + more)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
