"""The limits of the Agent Skills format."""

from repertory.text import normalized

SKILL_FILE = "SKILL.md"
# In a folder of skills, the first of these that a folder has makes it a skill.
SKILL_FILES = (SKILL_FILE, "skill.md")
MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 1_024
MAX_COMPATIBILITY_LENGTH = 500


def is_skill_name(name: str) -> bool:
    """Whether the format allows a name: lower-case letters, digits and single hyphens.

    As for its reference validator, letters of any script count, also those without case; marks that
    are no part of a letter do not, such as the vowel signs of Hindi.
    """
    plain = normalized("NFKC", name)
    is_right = plain == plain.lower() and all(part.isalnum() for part in plain.split("-"))
    return is_right and len(plain) <= MAX_NAME_LENGTH
