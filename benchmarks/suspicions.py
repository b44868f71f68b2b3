"""Prints which real skills and tools the rules of suspicion flag, and their false alarm rate.

    python -m benchmarks.suspicions ../shared/data

The exit code is 1 if more than 1 % of the harmless skills or tools are flagged, or if a lure in
``lures.txt`` is not flagged. A file that is not accepted as a skill is checked as plain text.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from repertory.catalogue.item import Item, Kind
from repertory.review.suspicions import suspicions
from repertory.sources.registry import build

LURES = Path(__file__).with_name("lures.txt")
MAX_FALSE_ALARMS = 0.01


def main() -> int:
    """Check the rules on the data."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suspicions", description=__doc__)
    parser.add_argument("data", type=Path, help="The folder with skills and tool_schemas.")
    data: Path = parser.parse_args().data.resolve()
    [skills] = build({"type": "skills", "path": str(data / "skills"), "name": "skills"}, data)
    [tools] = build({"type": "tools", "path": str(data / "tool_schemas"), "name": "tools"}, data)
    lures = {f"skills/{line}" for line in LURES.read_text("utf-8").splitlines() if line[:1] != "#"}
    found = skills.scan().items
    is_good = report("skills", found, lures) & report("tools", tools.scan().items, set())
    missed = [
        one for one in lures - {item.id for item in found} if not suspicions(_text(data, one))
    ]
    for one in missed:
        print(f"not flagged: {one}, which is not a skill")
    return 0 if is_good and not missed else 1


def report(name: str, items: Sequence[Item], lures: set[str]) -> bool:
    """Print the flagged items, and return whether the rules are good enough."""
    flagged = {item.id: findings for item in items if (findings := suspicions(item))}
    rules = Counter(finding.rule for findings in flagged.values() for finding in findings)
    for item, findings in sorted(flagged.items()):
        print(f"{'lure' if item in lures else 'ALARM':6}{item}")
        for finding in findings:
            print(f"      {finding.rule}: {finding.passage[:100]}")
    harmless = [item.id for item in items if item.id not in lures]
    wrong = len(flagged.keys() & set(harmless))
    missed = sorted({item.id for item in items if item.id in lures} - flagged.keys())
    rate = wrong / max(len(harmless), 1)
    print(f"{name}: {len(items):,}, flagged {len(flagged)}, false alarms {wrong} ({rate:.2%})")
    print(f"  by rule: {', '.join(f'{rule} {count}' for rule, count in rules.most_common())}")
    for item in missed:
        print(f"  not flagged: {item}")
    return rate <= MAX_FALSE_ALARMS and not missed


def _text(data: Path, lure: str) -> Item:
    """A lure that is not a valid skill, as an item with its whole text as body."""
    text = (data / lure / "SKILL.md").read_text("utf-8")
    return Item(id=lure, kind=Kind.SKILL, name=lure, source="skills", body=text)


if __name__ == "__main__":
    sys.exit(main())
