"""The contents of a catalogue, in words for a model that chooses among tools.

Names come from the authors of items and configurations, and a model reads these words as
instructions: only texts that look like names are included, up to a maximum length.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from repertory.catalogue.item import Kind
from repertory.index.keywords.document import Entry

MAX_NAMES = 12  # of servers, of sources and of tags each

_NAME = re.compile(r"[\w.:/@+-]{1,40}")


def contents(entries: Sequence[Entry]) -> str:
    """How many skills, tools and documents there are, of which sources and servers, and some tags.

    The text is deterministic, and empty without entries. The most frequent names come first.
    """
    if not entries:
        return ""
    kinds = [
        _kind(entries, Kind.SKILL, "source"),
        _kind(entries, Kind.TOOL, "server"),
        _kind(entries, Kind.DOCUMENT, "source"),
    ]
    text = f"The catalogue holds {_listed([one for one in kinds if one])}."
    tags = _names(tag for entry in entries for tag in entry.tags)
    return f"{text} Tags: {tags}." if tags else text


def _kind(entries: Sequence[Entry], kind: Kind, whose: str) -> str:
    found = [entry for entry in entries if entry.kind is kind]
    if not found:
        return ""
    count = f"{len(found):,} {kind}" + ("s" if len(found) > 1 else "")
    names = _names(getattr(entry, whose) for entry in found)
    return f"{count} ({names})" if names else count


def _names(names: Iterable[str]) -> str:
    counts = Counter(name for name in names if _NAME.fullmatch(name))
    most = sorted(counts, key=lambda name: (-counts[name], name))
    more = [f"{len(most) - MAX_NAMES:,} more"] if len(most) > MAX_NAMES else []
    return ", ".join(most[:MAX_NAMES] + more)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
