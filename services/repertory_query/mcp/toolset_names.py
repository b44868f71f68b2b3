"""The names of the toolsets, which the command line needs before anything of MCP."""

from enum import StrEnum


class Toolset(StrEnum):
    """A set of tools by name."""

    CATALOGUE = "catalogue"
    SKILLS = "skills"
    PORTABLE_SKILLS = "portable-skills"
    PROJECT = "project"
    EXPLAIN = "explain"
