"""Queries that are names, in every spelling, shortened, and misspelt, in real catalogues."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.quality.product import Product
from benchmarks.quality.report import Part, Target, percent, table

SPELLINGS = ("name", "upper", "spaced", "compact", "camel", "snake", "kebab")
KINDS = (*SPELLINGS, "prefix", "typo")

TEXT = """The queries are the names of {tools} tools of real MCP servers and of {skills} real skills
in one catalogue, with the threshold (`repertory eval --queries 0`): unchanged, in every other
spelling, shortened (the shortest prefix of at least four characters that at most five names share)
and with one edit anywhere. All items with an equal name count as right; after an edit, all items
whose name is equally close to the query. `hidden` is the share of the queries with a right item
among the first five that lose it to the threshold."""


def part(product: Product, project: Path) -> Part:
    """Measure each kind of query, with vectors and without.

    Args:
        product: The command line.
        project: The catalogue of real items.
    """
    with_vectors, words_alone = (
        _kinds(product, project, has_model=has_model) for has_model in (True, False)
    )
    shown = [
        (
            f"`{kind}`",
            f"{with_vectors[kind]['queries']:,}",
            *_cells(with_vectors[kind]),
            *_cells(words_alone[kind]),
        )
        for kind in KINDS
    ]
    head = ("hit@1", "hit@5", "hidden")
    columns = ("Kind", "queries", *head, *(f"{name}, words alone" for name in head))
    items = [item["kind"] for item in product.ask("items", "list", directory=project)]
    text = TEXT.format(tools=items.count("tool"), skills=f"{items.count('skill'):,}")
    return Part(
        title="Names",
        text=f"{text}\n\n{table(columns, shown)}",
        targets=[*_targets(with_vectors, "with vectors"), *_targets(words_alone, "words alone")],
    )


def _kinds(product: Product, project: Path, *, has_model: bool) -> Mapping[str, Any]:
    """The measurements of each kind of query."""
    [measured] = product.ask(
        *("eval", "--queries", "0", "--worst", "0"), directory=project, has_model=has_model
    )
    kinds: dict[str, Any] = measured["kinds"]
    return kinds


def _cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(percent(_share(one, name)) for name in ("hit@1", "hit@5", "hidden"))


def _share(one: Mapping[str, Any], figure: str) -> float:
    return float(one["figures"][figure]["mean"])


def _targets(kinds: Mapping[str, Any], where: str) -> list[Target]:
    least = min(_share(kinds[kind], "hit@1") for kind in SPELLINGS)
    return [
        Target(
            what=f"Names, {where}: first, in the worst spelling", asked=99, measured=100 * least
        ),
        Target(
            what=f"Names, {where}: first, with one edit",
            asked=97,
            measured=100 * _share(kinds["typo"], "hit@1"),
        ),
        Target(
            what=f"Names, {where}: in the first five, shortened",
            asked=97,
            measured=100 * _share(kinds["prefix"], "hit@5"),
        ),
        Target(
            what=f"Names, {where}: hidden, in the worst kind",
            asked=0,
            measured=100 * max(_share(kinds[kind], "hidden") for kind in KINDS),
            at_least=False,
        ),
    ]
