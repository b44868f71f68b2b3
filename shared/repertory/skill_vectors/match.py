"""The result of a search for skill files."""

import msgspec


class SkillMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A skill file's path, relative to the sandbox, and its cosine with the query."""

    path: str
    score: float
