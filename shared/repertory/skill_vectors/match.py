"""What a search of skill files finds."""

import msgspec


class SkillMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A skill file: its path relative to the sandbox, and its cosine with the query."""

    path: str
    score: float
