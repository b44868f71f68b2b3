"""The contents of a catalogue, in words for a model that chooses among tools.

A model reads these words as instructions, so no text of an item is among them: only names of
sources. A stranger may have written those, too: a project that was cloned has a configuration and
folders of its own. So a name is shown only if there is no room in it for a sentence: up to three
short words in Latin letters without an accent. The others are counted.
"""

import re
from collections.abc import Mapping, Sequence

from repertory.catalogue.item import Kind
from repertory.stats import Contents
from repertory.text import counted

MAX_NAMES = 12  # of sources, for each kind

_NAME = re.compile(r"(?=.{1,20}\Z)[a-zA-Z0-9]+(?:[-_][a-zA-Z0-9]+){0,2}")


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
    names = sorted(filter(_NAME.fullmatch, sources), key=lambda name: (-sources[name], name))
    shown = names[:MAX_NAMES]
    more = [f"{len(sources) - len(shown):,} more"] if shown and len(shown) < len(sources) else []
    return ", ".join(shown + more)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
