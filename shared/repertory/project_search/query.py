"""The query and the answer of a project search."""

from enum import StrEnum

import msgspec

MAX_RESULTS = 1_000
EMPTY_QUERY = "searchQuery parameter is required and cannot be empty"


class Field(StrEnum):
    """A searched text of a file, by the name of its attribute in ``File``."""

    TITLE = "title"
    NAME = "name"
    CONTENT = "content"
    SYNOPSIS = "synopsis"
    PATH = "path"

    @property
    def search_type(self) -> "SearchType":
        """The search type that covers it."""
        if self in (Field.NAME, Field.PATH):
            return SearchType.TITLE
        return SearchType(self.value)


class SearchType(StrEnum):
    """The fields to search."""

    TITLE = "title"
    CONTENT = "content"
    SYNOPSIS = "synopsis"
    ALL = "all"

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields it covers, in the order of the search."""
        return tuple(field for field in Field if self in (SearchType.ALL, field.search_type))


class ProjectQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One search of a project's files.

    Attributes:
        search_query: The text to find.
        search_type: The fields to search; ``title`` includes the file's name and path.
        fuzzy_search: Whether typos are tolerated; otherwise substrings match, ignoring case.
        max_results: The maximum number of results, capped at ``MAX_RESULTS``.
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
