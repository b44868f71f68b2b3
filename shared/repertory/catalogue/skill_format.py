"""The limits of the Agent Skills format."""

import re

SKILL_FILE = "SKILL.md"
MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 1_024
MAX_COMPATIBILITY_LENGTH = 500

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def is_skill_name(name: str) -> bool:
    """Whether the format allows a name: lower-case letters, digits and single hyphens."""
    return len(name) <= MAX_NAME_LENGTH and _NAME.fullmatch(name) is not None
