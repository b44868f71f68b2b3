"""The contents of a catalogue, in words for a model that chooses among tools.

A model reads these words as instructions, so no text of an item is among them: only the names of
sources, which come from the user, and of those the ones that look like names, up to a length.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from repertory.catalogue.item import Kind
from repertory.index.keywords.document import Entry

MAX_NAMES = 12  # of sources, for each kind

_NAME = re.compile(r"[\w.:/@+-]{1,40}")


def contents(entries: Sequence[Entry]) -> str:
    """How many skills, tools and documents there are, and of which sources.

    The text is deterministic, and empty without entries. The most frequent names come first.
    """
    if not entries:
        return ""
    kinds = [_kind(entries, kind) for kind in (Kind.SKILL, Kind.TOOL, Kind.DOCUMENT)]
    return f"The catalogue holds {_listed([one for one in kinds if one])}."


def _kind(entries: Sequence[Entry], kind: Kind) -> str:
    found = [entry for entry in entries if entry.kind is kind]
    if not found:
        return ""
    count = f"{len(found):,} {kind}" + ("s" if len(found) > 1 else "")
    names = _names(entry.source for entry in found)
    return f"{count} ({names})" if names else count


def _names(names: Iterable[str]) -> str:
    counts = Counter(name for name in names if _NAME.fullmatch(name))
    most = sorted(counts, key=lambda name: (-counts[name], name))
    more = [f"{len(most) - MAX_NAMES:,} more"] if len(most) > MAX_NAMES else []
    return ", ".join(most[:MAX_NAMES] + more)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
