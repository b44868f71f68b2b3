"""Tool names that every host accepts."""

import re

from repertory.catalogue.item import item_key

MAX_NAME_LENGTH = 64

_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME_LENGTH}}}")
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGITS = 10  # of the digest: 40 bits; only names with the same start can collide


def host_name(item_id: str) -> str:
    """Return the id if it is a valid name, else its valid part and a digest.

    Returns:
        1 to 64 letters, digits, underscores and hyphens, always the same for an id.
    """
    if _NAME.fullmatch(item_id):
        return item_id
    start = _UNFIT.sub("_", item_id)[: MAX_NAME_LENGTH - _DIGITS - 1]
    return f"{start}_{item_key(item_id)[:_DIGITS]}"
