"""Counts the table of word rarity: `python -m benchmarks.quality.background DATA > FILE`.

The table is ``index/keywords/background.txt``: the number of texts, then every usual term with the
number of texts that have it. The texts are the names, servers and descriptions of the corpora of
the labelled sets, each once; terms that only bodies and schemas have are usual, but rare. One set
is left out: a language model wrote its texts, with few words.
"""

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

import msgspec

from benchmarks.quality.product import rows
from repertory.index.keywords.tokens import wholes, words

LEFT_OUT = "sealtools"
MIN_TEXTS, MIN_BODIES = 3, 5  # that have a usual term: as names and descriptions, or in full
USUAL = re.compile(r"[a-z][a-z0-9]{1,19}")
CODE = re.compile(r"[a-f0-9]{6,}|.*\d{3}.*")  # hashes and numbers


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.background")
    parser.add_argument("data", type=Path, help="The folder with retrieval and skills.")
    data: Path = parser.parse_args().data
    short: Counter[str] = Counter()
    full: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    for corpus in sorted(data.glob("retrieval/*/corpus.jsonl")):
        for row in rows(corpus) if corpus.parent.name != LEFT_OUT else []:
            description = row.get("description") or ""
            if (key := (row["name"], description[:200])) in seen:
                continue
            seen.add(key)
            own = _terms(f"{row['name']} {row.get('server') or ''} {description}")
            rest = msgspec.json.encode(row.get("schema")).decode() + (row.get("body") or "")
            short.update(own)
            full.update(own | _terms(rest))
    for skill in sorted(data.glob("skills/**/SKILL.md")):
        full.update(_terms(skill.read_text("utf-8", "replace")))
    usual = {term for term, count in short.items() if count >= MIN_TEXTS}
    usual |= {term for term, count in full.items() if count >= MIN_BODIES}
    print(len(seen))
    for term in sorted(usual):
        if USUAL.fullmatch(term) and not CODE.fullmatch(term):
            print(term, short[term])
    return 0


def _terms(text: str) -> set[str]:
    return {term for _, term in (*words(text), *wholes(text))}


if __name__ == "__main__":
    sys.exit(main())
