"""The toolsets: the tools that an agent sees. Active toolsets have no tool names in common."""

from collections.abc import Callable, Sequence

from repertory.errors import UsageError
from repertory.functions.table import FUNCTIONS
from repertory.values import Values
from repertory_query.backend.pool import Work
from repertory_query.mcp.catalogue import catalogue
from repertory_query.mcp.explaining import explaining
from repertory_query.mcp.tool import Tool
from repertory_query.mcp.toolset_names import Toolset

_SKILLS = [
    FUNCTIONS[name]
    for name in ("Vector.SearchSkills", "Vector.VectorUpdate", "skill.discovery.search")
]
_FUNCTIONS = {
    Toolset.SKILLS: _SKILLS,
    Toolset.PORTABLE_SKILLS: [function.portable() for function in _SKILLS],
    Toolset.PROJECT: [FUNCTIONS["search"]],
}


def tools_of(toolsets: Sequence[Toolset], defaults: Callable[[], Values]) -> list[Tool]:
    """The tools of some toolsets, in their order; repeated toolsets count once.

    Args:
        toolsets: The toolsets.
        defaults: Returns the settings for missing arguments of a search.

    Raises:
        UsageError: Two of them have a tool of the same name.
    """
    whose: dict[str, Toolset] = {}
    tools: list[Tool] = []
    for toolset in dict.fromkeys(toolsets):
        for tool in _tools(toolset, defaults):
            name = tool.function.name
            if name in whose:
                raise UsageError(
                    f"The toolsets {whose[name]} and {toolset} both have a tool {name!r}; "
                    "start a server for each of them."
                )
            whose[name] = toolset
            tools.append(tool)
    return tools


def _tools(toolset: Toolset, defaults: Callable[[], Values]) -> Sequence[Tool]:
    if toolset is Toolset.CATALOGUE:
        return catalogue(defaults)
    if toolset is Toolset.EXPLAIN:
        return explaining(defaults)
    return [Tool(function=function, work=Work.SEARCH) for function in _FUNCTIONS[toolset]]
