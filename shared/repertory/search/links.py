"""The links of an item: the tools that a skill needs, or the skills that need a tool."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from repertory.catalogue.item import Item

Lookup = Callable[[Sequence[str]], Mapping[str, Item]]  # the items that a caller may see, by id


class Links(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The links of an item.

    Attributes:
        needs: The ids of the tools that a skill mentions.
        missing: The mentioned tools that are missing from the catalogue, as the skill writes them.
        needed_by: The ids of the skills that mention a tool, sorted, at most 100.
    """

    needs: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
