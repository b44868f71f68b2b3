"""The query and the answer of a project search."""

from enum import StrEnum

import msgspec

MAX_RESULTS = 1_000
EMPTY_QUERY = "searchQuery parameter is required and cannot be empty"


class SearchType(StrEnum):
    """The fields to search."""

    TITLE = "title"
    CONTENT = "content"
    SYNOPSIS = "synopsis"
    ALL = "all"

    @property
    def fields(self) -> "tuple[SearchType, ...]":
        """The fields it stands for, in the order of the search."""
        if self is SearchType.ALL:
            return SearchType.TITLE, SearchType.CONTENT, SearchType.SYNOPSIS
        return (self,)


class ProjectQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One search of a project's files.

    Attributes:
        search_query: The text to find.
        search_type: The fields to search.
        fuzzy_search: Whether typos are tolerated; otherwise substrings match, ignoring case.
        max_results: The maximum number of results.
        threshold: The maximum distance of a fuzzy match: 0 is exact, 1 is anything.
    """

    search_query: str
    search_type: SearchType = SearchType.ALL
    fuzzy_search: bool = False
    max_results: int = 20
    threshold: float = 0.3


class ProjectAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer: readable text and the number of results in it."""

    success: bool = True
    content: str
    total_results: int
