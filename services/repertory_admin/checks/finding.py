"""What a check of `repertory doctor` reports."""

from enum import StrEnum

import msgspec


class State(StrEnum):
    """The result of a check."""

    GOOD = "good"
    UNSURE = "unsure"
    BAD = "bad"


class Finding(msgspec.Struct, frozen=True):
    """One line of the tick list."""

    state: State
    subject: str
    text: str
