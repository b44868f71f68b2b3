"""What a catalogue holds, in words for a model that chooses among tools.

Names come from whoever wrote an item or a configuration, and these words stand where a model reads
instructions: only what looks like a name is told, and only so much of it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from repertory.catalogue.item import Kind
from repertory.index.keywords.document import Entry

MOST_NAMES = 12  # of servers, of sources and of tags each

_NAME = re.compile(r"[\w.:/@+-]{1,40}")


def contents(entries: Sequence[Entry]) -> str:
    """How many skills, tools and documents there are, of which sources and servers, and some tags.

    The same entries make the same words, and none make none. What there is most of is named first.
    """
    if not entries:
        return ""
    told = [
        _kind(entries, Kind.SKILL, "source"),
        _kind(entries, Kind.TOOL, "server"),
        _kind(entries, Kind.DOCUMENT, "source"),
    ]
    text = f"The catalogue holds {_listed([one for one in told if one])}."
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
    more = [f"{len(most) - MOST_NAMES:,} more"] if len(most) > MOST_NAMES else []
    return ", ".join(most[:MOST_NAMES] + more)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
