"""What a search of a project's files is asked, and what it answers."""

from enum import StrEnum

import msgspec

MOST_RESULTS = 1_000
EMPTY_QUERY = "searchQuery parameter is required and cannot be empty"


class SearchType(StrEnum):
    """Where to look."""

    TITLE = "title"
    CONTENT = "content"
    SYNOPSIS = "synopsis"
    ALL = "all"

    @property
    def fields(self) -> "tuple[SearchType, ...]":
        """The fields that it stands for, in the order in which they are looked at."""
        if self is SearchType.ALL:
            return SearchType.TITLE, SearchType.CONTENT, SearchType.SYNOPSIS
        return (self,)


class ProjectQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One search of a project's files.

    Attributes:
        search_query: What is looked for.
        search_type: Where.
        fuzzy_search: Whether typos are tolerated; else it is a substring, whatever its case.
        max_results: The most results.
        threshold: How unlike a fuzzy match may be: 0 is exact, 1 is anything.
    """

    search_query: str
    search_type: SearchType = SearchType.ALL
    fuzzy_search: bool = False
    max_results: int = 20
    threshold: float = 0.3


class ProjectAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a search of a project's files answers: readable text, and how many results it lists."""

    success: bool = True
    content: str
    total_results: int
