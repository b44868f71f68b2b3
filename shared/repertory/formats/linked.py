"""The links of an item in words: the tools that a skill needs, the skills that need a tool."""

from collections.abc import Callable, Mapping, Sequence

from repertory.catalogue.item import Item
from repertory.formats.phrases import line
from repertory.formats.signatures import signature
from repertory.search.links import Links
from repertory.text import one_line

MAX_SIGNATURES = 20  # per skill; further tools are named without their parameters


def link_lines(
    links: Links, items: Callable[[Sequence[str]], Mapping[str, Item]], subject: str = ""
) -> list[str]:
    """Describe an item's links, one line per direction; empty if it has none.

    Args:
        links: The links.
        items: ``Backend.items``, for the parameters of the tools.
        subject: The item's name or id, to start the lines with; may be empty.
    """
    first, said = f"{one_line(subject)} needs" if subject else "Needs", []
    if links.needs:
        tools = items(links.needs[:MAX_SIGNATURES])
        shown = [
            signature(one, tools[one]) if one in tools else one_line(one) for one in links.needs
        ]
        said.append(f"{first} {', '.join(shown)}.")
    if links.missing:
        names = ", ".join(map(one_line, links.missing))
        said.append(f"{first} {names}, not in this catalogue.")
    if links.needed_by:
        said.append(f"Needed by {', '.join(map(one_line, links.needed_by))}.")
    return said


def link_facts(links: Links) -> dict[str, str]:
    """The non-empty links, by a label for people."""
    facts = {"needs": links.needs, "missing": links.missing, "needed by": links.needed_by}
    return {name: ", ".join(map(line, ids)) for name, ids in facts.items() if ids}
