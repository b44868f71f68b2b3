"""Prints the links from real skills to real tools, and the skills that violate the format.

    python -m benchmarks.skills ../shared/data

Each link is on a separate line, so that it can be checked by hand.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from repertory.catalogue.item import Item, Kind
from repertory.formats.skill_text import defect, front_matter
from repertory.index.keywords.index import KeywordIndex
from repertory.search.linking import links
from repertory.sources.registry import build


def main() -> int:
    """Read the data, and print links and violations."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.skills", description=__doc__)
    parser.add_argument("data", type=Path, help="The folder with skills and tool_schemas.")
    data: Path = parser.parse_args().data.resolve()
    [skills] = build({"type": "skills", "path": str(data / "skills"), "name": "skills"}, data)
    [tools] = build({"type": "tools", "path": str(data / "tool_schemas"), "name": "tools"}, data)
    items = {item.id: item for item in (*skills.scan().items, *tools.scan().items)}
    show_links(items)
    show_format([item for item in items.values() if item.kind is Kind.SKILL])
    return 0


def show_links(items: Mapping[str, Item]) -> None:
    """Print each link, and the number of links by kind."""
    index = KeywordIndex.empty().updated((), items.values())

    def seen(ids: Sequence[str]) -> dict[str, Item]:
        return {one: items[one] for one in ids if one in items}

    counts: Counter[str] = Counter()
    for item in items.values():
        found = links(index, item.id, seen)
        for what, ids in (("needs", found.needs), ("lacks", found.missing)):
            counts[what] += len(ids)
            for one in ids:
                print(f"{item.id} {what} {one}")
        counts["needed by"] += len(found.needed_by)
    print(", ".join(f"{what} {count:,}" for what, count in counts.items()))


def show_format(skills: Sequence[Item]) -> None:
    """Print how many skills violate the format, and how many have fields that were corrected."""
    wrong = Counter(defect(item).split(" ")[1] for item in skills if defect(item))
    changed = [
        item
        for item in skills
        if any(front_matter(item).get(key) != value for key, value in item.extra.items())
    ]
    print(f"skills {len(skills):,}, not allowed: {dict(wrong)}, mended {len(changed):,}")


if __name__ == "__main__":
    sys.exit(main())
