"""What an item is linked to: the tools that a skill needs, or the skills that need a tool."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from repertory.catalogue.item import Item

Lookup = Callable[[Sequence[str]], Mapping[str, Item]]  # what a caller sees of some ids


class Links(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What an item is linked to.

    Attributes:
        needs: The ids of the tools that a skill mentions.
        missing: The tools that a skill mentions and that are not in the catalogue, as it has them.
        needed_by: The ids of the skills that mention a tool, sorted, at most 100.
    """

    needs: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
