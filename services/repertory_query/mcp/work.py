"""What a tool occupies, which the application needs before anything of MCP."""

from enum import StrEnum


class Work(StrEnum):
    """The resource that a tool occupies, which decides on which threads it runs."""

    SEARCH = "search"
    READ = "read"
    CALL = "call"  # a third-party server
