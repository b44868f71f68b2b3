"""Git repositories (skeleton)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repertory.sources.adding import Address, Recognised
from repertory.sources.source import Source


def recognise(address: Address) -> Recognised | None:
    """Take nearly any address, or None."""
    return None


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the sources of one entry; nothing is fetched."""
    return []
