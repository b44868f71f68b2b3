"""Count the table of word rarity: `python -m benchmarks.quality.background DATA > FILE`.

The table, ``index/keywords/background.txt``, has the number of texts, then every usual term with
the number of texts that contain it. A text is the name, server and description of an item of a
labelled set's corpus; duplicates count once. Terms that are frequent only in bodies and schemas are
listed too, with the low counts of the texts. One set is left out, because a language model wrote
its texts with a small vocabulary. A compound of common words is listed only if people write it as
one word, so ``emailAddress`` is not.
"""

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

import msgspec

from benchmarks.quality.product import rows
from repertory.index.keywords.background import least_texts
from repertory.index.keywords.tokens import STOP_WORDS, runs, term_of, terms, wholes, words

LEFT_OUT = "sealtools"
MIN_TEXTS, MIN_BODIES = 3, 5  # minimum counts of a usual term: in the texts; including bodies
USUAL = re.compile(r"[a-z][a-z0-9]{1,19}")
CODE = re.compile(r"[a-f0-9]{6,}|.*\d{3}.*")  # hashes and numbers


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.background")
    parser.add_argument("data", type=Path, help="The folder with retrieval and skills.")
    data: Path = parser.parse_args().data
    short: Counter[str] = Counter()
    full: Counter[str] = Counter()
    as_one: Counter[str] = Counter()  # the number of texts that write a term as one word
    seen: set[tuple[str, str]] = set()
    for corpus in sorted(data.glob("retrieval/*/corpus.jsonl")):
        for row in rows(corpus) if corpus.parent.name != LEFT_OUT else []:
            description = row.get("description") or ""
            if (key := (row["name"], description[:200])) in seen:
                continue
            seen.add(key)
            name = f"{row['name']} {row.get('server') or ''} {description}"
            rest = msgspec.json.encode(row.get("schema")).decode() + (row.get("body") or "")
            short.update(_terms(name))
            full.update(_terms(f"{name} {rest}"))
            as_one.update({*terms(f"{name} {rest}")})
    for skill in sorted(data.glob("skills/**/SKILL.md")):
        text = skill.read_text("utf-8", "replace")
        full.update(_terms(text))
        as_one.update({*terms(text)})
    usual = {term for term, count in short.items() if count >= MIN_TEXTS}
    usual |= {term for term, count in full.items() if count >= MIN_BODIES}
    usual -= {term for term in usual if as_one[term] < MIN_BODIES and _is_compound(term, short)}
    print(len(seen))
    for term in sorted(usual):
        if USUAL.fullmatch(term) and not CODE.fullmatch(term):
            print(term, short[term])
    return 0


def _terms(text: str) -> set[str]:
    joined = [pair for run in runs(text) if "_" not in run for pair in wholes(run)]
    return {term for _, term in (*words(text), *joined)}


def _is_compound(term: str, counts: Counter[str]) -> bool:
    """Whether a term consists of two or three common words."""
    return any(
        _is_common(term[:end], counts) and (_is_common(rest, counts) or _is_compound(rest, counts))
        for end in range(2, len(term) - 1)
        if (rest := term[end:])
    )


def _is_common(word: str, counts: Counter[str]) -> bool:
    return word in STOP_WORDS or counts[term_of(word)] >= least_texts(word)


if __name__ == "__main__":
    sys.exit(main())
