"""The contents of a catalogue, in words for a model that chooses among tools.

A model may read these words as instructions, so they contain no text of an item, only names of
sources. Even those may come from a stranger, because a cloned project has its own configuration and
folders. So a name is shown only if it is too short for a sentence: up to three short words in Latin
letters without accents. The other names are counted.
"""

import re
from collections.abc import Mapping, Sequence

from repertory.catalogue.item import Kind
from repertory.stats import Contents
from repertory.text import counted

MAX_NAMES = 12  # of sources, for each kind

_NAME = re.compile(r"(?=.{1,20}\Z)[a-zA-Z0-9]+(?:[-_][a-zA-Z0-9]+){0,2}")


def contents(found: Contents) -> str:
    """The numbers of skills, tools and documents, with the names of their sources.

    The text is deterministic, and empty without items. Sources with the most items come first.
    """
    kinds = (Kind.SKILL, Kind.TOOL, Kind.DOCUMENT)
    parts = [_kind(kind, found.kinds[kind]) for kind in kinds if found.kinds.get(kind)]
    return f"The catalogue holds {_listed(parts)}." if parts else ""


def _kind(kind: Kind, sources: Mapping[str, int]) -> str:
    count = counted(sum(sources.values()), kind)
    names = _names(sources)
    return f"{count} ({names})" if names else count


def _names(sources: Mapping[str, int]) -> str:
    names = sorted(filter(_NAME.fullmatch, sources), key=lambda name: (-sources[name], name))
    shown = names[:MAX_NAMES]
    more = [f"{len(sources) - len(shown):,} more"] if shown and len(shown) < len(sources) else []
    return ", ".join(shown + more)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
