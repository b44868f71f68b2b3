"""The toolsets, by name and by path. This module does not import the MCP SDK, which is slow."""

from enum import StrEnum


class Toolset(StrEnum):
    """A set of tools by name."""

    CATALOGUE = "catalogue"
    SKILLS = "skills"
    PORTABLE_SKILLS = "portable-skills"
    PROJECT = "project"
    EXPLAIN = "explain"


PATHS = {
    "/mcp": Toolset.CATALOGUE,
    "/mcp/skills": Toolset.SKILLS,
    "/mcp/portable-skills": Toolset.PORTABLE_SKILLS,
    "/mcp/project": Toolset.PROJECT,
    "/mcp/explain": Toolset.EXPLAIN,
}
