"""Groups: what a key carries, and what a source names in ``visible_to``."""

import re
from collections.abc import Iterable, Sequence

from repertory.errors import UsageError

MAX_GROUPS = 100  # of one key or one source

_NAME = re.compile(r"[\w.@-]{1,64}")


def checked(names: Iterable[object]) -> tuple[str, ...]:
    """Validated group names without duplicates, in order.

    Raises:
        UsageError: A name is invalid, or there are too many.
    """
    found = tuple(dict.fromkeys(check_name("group", name) for name in names))
    if len(found) > MAX_GROUPS:
        raise UsageError(f"These are {len(found):,} groups; {MAX_GROUPS} is the limit.")
    return found


def check_name(what: str, name: object) -> str:
    """The name of a group or a key.

    Raises:
        UsageError: It is invalid.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"A {what} cannot be named {str(name)[:80]!r}; use up to 64 letters, digits, '.', '@', "
            "'_' and '-'."
        )
    return name


def may_see(groups: frozenset[str], visible_to: Sequence[str]) -> bool:
    """Whether a caller with some groups may see a source; one without a list is for everyone."""
    return not visible_to or not groups.isdisjoint(visible_to)
