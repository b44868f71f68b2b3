"""Names of tools that every host accepts."""

import re

from repertory.catalogue.item import item_key

LONGEST_NAME = 64

_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}")
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGITS = 10  # of the digest: 40 bits, and only names that begin alike can meet


def host_name(item_id: str) -> str:
    """The id itself where it fits, else what of it does, and a digest of the whole.

    Returns:
        1 to 64 letters, digits, underscores and hyphens, always the same for an id.
    """
    if _NAME.fullmatch(item_id):
        return item_id
    start = _UNFIT.sub("_", item_id)[: LONGEST_NAME - _DIGITS - 1]
    return f"{start}_{item_key(item_id)[:_DIGITS]}"
