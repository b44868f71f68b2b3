"""The limits of the Agent Skills format."""

from repertory.text import normalized

SKILL_FILE = "SKILL.md"
# A folder that contains one of these is a skill; the first one found is its file.
SKILL_FILES = (SKILL_FILE, "skill.md")
MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 1_024
MAX_COMPATIBILITY_LENGTH = 500


def is_skill_name(name: str) -> bool:
    """Whether the format allows a name: lower-case letters, digits and single hyphens.

    Like the format's reference validator, this allows letters of any script, including those
    without case, but no separate marks such as the vowel signs of Hindi.
    """
    plain = normalized("NFKC", name)
    is_right = plain == plain.lower() and all(part.isalnum() for part in plain.split("-"))
    return is_right and len(plain) <= MAX_NAME_LENGTH
