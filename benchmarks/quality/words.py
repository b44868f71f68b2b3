"""Queries of single words from descriptions."""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.quality.product import Product, hits
from benchmarks.quality.report import Part, Target, percent, table
from repertory.catalogue.item import Kind
from repertory.local.one_shot import Repertory
from repertory_eval.measure import Found

UNIQUE = 200  # number of words that only one item has
INNER = 100  # number of such words with a capital letter inside
COMMON = 100  # number of words that a few items have
MAX_ITEMS = 20
SHOWN = 5
LOWER = "lower case"
CASES: Mapping[str, Callable[[str], str]] = {
    LOWER: str.lower,
    "upper case": str.upper,
    "first letter upper case": str.title,
    "as written": str,
}

_WORD = re.compile(r"[^\W\d_]{4,}")
_INNER = re.compile(r"[^\W\d_A-Z][A-Z]")

TEXT = """These queries are single words of four letters or more from the catalogue of all real
items, in a seeded sample, with the default threshold. Words of one skill occur in its description
and in no other item's name, description or tag. The figures are the shares for which that skill is
the first of {shown} results, is among them, and for which the answer is empty; `same` is the share
with the same results as in lower case. Words with a capital inside are identifiers only as written.
In the first release, 33.5 of the {unique} words were first, 35.5 among the first five, and 55.0 of
the answers were empty.

{common} other words occur in the names, descriptions or tags of 2 to {most} items. The figure is
the share of those items found with the limit {most}. In the first release it was 22.4."""


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """Words of a catalogue.

    Attributes:
        items: The ids of the items that have a word, by the word in lower case.
        written: The original spelling of a word in one item, by the word in lower case.
        skills: The ids of all skills.
        named: The words of names, in lower case.
    """

    items: Mapping[str, set[str]]
    written: Mapping[str, str]
    skills: set[str]
    named: set[str]

    def of_one_skill(self) -> list[str]:
        """The words that occur only in one skill's description."""
        return sorted(
            word
            for word, items in self.items.items()
            if len(items) == 1 and items <= self.skills and word not in self.named
        )

    def of_a_few(self) -> list[str]:
        """The words that 2 to ``MAX_ITEMS`` items have."""
        return sorted(word for word, items in self.items.items() if 2 <= len(items) <= MAX_ITEMS)


def part(product: Product, project: Path) -> Part:
    """Measure words of one skill and words of a few items.

    Args:
        product: The product.
        project: The catalogue of real items.
    """
    shown, targets = [], []
    with product.opened(project) as repertory:
        words = _words(repertory)
        of_one = words.of_one_skill()
        inner = [word for word in of_one if _INNER.search(words.written[word])]
        unique = _chosen(of_one, UNIQUE)
        inner = _chosen(inner, INNER)
        groups = {f"{len(unique)} words": unique, f"{len(inner)} with a capital inside": inner}
        for group, chosen in groups.items():
            in_lower = [hits(repertory, word, limit=SHOWN) for word in chosen]
            for case, change in CASES.items():
                typed = [change(words.written[word]) for word in chosen]
                found = [hits(repertory, word, limit=SHOWN) for word in typed]
                pairs = list(zip(chosen, found, strict=True))
                first = _share([words.items[word] <= _ids(of[:1]) for word, of in pairs])
                among = _share([words.items[word] <= _ids(of) for word, of in pairs])
                empty = _share([not of for of in found])
                same = _share([one == other for one, other in zip(found, in_lower, strict=True)])
                shown.append((f"{group}, {case}", *map(percent, (first, among, empty, same))))
                targets += [
                    Target(
                        what=f"Words of one skill, {group}, {case}: among the first {SHOWN}",
                        asked=99,
                        measured=100 * among,
                    ),
                    Target(
                        what=f"Words of one skill, {group}, {case}: empty answers",
                        asked=0,
                        measured=100 * empty,
                        at_least=False,
                    ),
                ]
        common = _chosen(words.of_a_few(), COMMON)
        found_items = [_ids(hits(repertory, word, limit=MAX_ITEMS)) for word in common]
    found_share = sum(
        len(words.items[word] & found) / len(words.items[word])
        for word, found in zip(common, found_items, strict=True)
    ) / len(common)
    empty_share = _share([not found for found in found_items])
    targets.append(
        Target(what=f"Words of 2 to {MAX_ITEMS} items: found", asked=95, measured=100 * found_share)
    )
    text = TEXT.format(unique=UNIQUE, shown=SHOWN, common=COMMON, most=MAX_ITEMS)
    few = [(f"{len(common)} words", percent(found_share), percent(empty_share))]
    tables = (
        table(("Words of one skill", "first", f"first {SHOWN}", "empty", "same"), shown),
        table((f"Words of 2 to {MAX_ITEMS} items", "items found", "empty"), few),
    )
    return Part(title="Words", text="\n\n".join((text, *tables)), targets=targets)


def _words(repertory: Repertory) -> Words:
    """Collect the words of names, descriptions, and tags."""
    ids = [entry.id for entry in repertory.entries()]
    of_word: defaultdict[str, set[str]] = defaultdict(set)
    written: dict[str, str] = {}
    skills: set[str] = set()
    named: set[str] = set()
    for item in repertory.items(ids).values():
        if item.kind is Kind.SKILL:
            skills.add(item.id)
        named.update(word.lower() for word in _WORD.findall(item.name))
        for text in (item.name, item.description, *item.tags):
            for word in _WORD.findall(text):
                of_word[word.lower()].add(item.id)
                written.setdefault(word.lower(), word)
    return Words(items=of_word, written=written, skills=skills, named=named)


def _ids(found: Sequence[Found]) -> set[str]:
    return {item for hit in found for item in hit}


def _chosen(words: list[str], count: int) -> list[str]:
    return random.Random(1).sample(words, min(count, len(words)))


def _share(of: Sequence[bool]) -> float:
    return sum(of) / len(of)
