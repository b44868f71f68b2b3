"""The results of a project search as text for models and people."""

from collections.abc import Sequence

import msgspec

from repertory.project_search.query import ProjectQuery, SearchType
from repertory.text import cut, one_line

MAX_QUERY_LENGTH = 200  # characters of the query that are repeated

NO_FILES = "No files found in the project."


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One matching file and the field that matched."""

    id: str  # of its item
    title: str
    path: str
    field: SearchType
    relevance: int | None = None  # percent; None in exact mode
    snippet: str = ""  # around the match; empty if the field is empty


def report(
    query: ProjectQuery, results: Sequence[Result], unread: int = 0, *, is_cut: bool = False
) -> str:
    """Write a heading, the query and a numbered list of results, or suggestions.

    Text from a file stays on its line, so no file can fake another result.

    Args:
        query: The query.
        results: The results.
        unread: The number of files whose text is not searched, shown if nothing was found.
        is_cut: Whether more files match.
    """
    asked = cut(query.search_query, MAX_QUERY_LENGTH)
    lines = [
        "SEARCH RESULTS",
        f'Query: "{asked}"',
        f"Search Type: {query.search_type}",
        f"Mode: {'Fuzzy' if query.fuzzy_search else 'Exact'} search",
        f"Results: {len(results)}",
        "",
    ]
    if not results:
        lines += [
            f'No files found matching "{asked}".',
            "",
            "Try:",
            "- Different search terms",
            "- Fuzzy search for typo tolerance",
            '- Broader search type (e.g., "all" instead of "title")',
        ]
        if unread:
            why = "are too large or have names that cannot be shown"
            lines += ["", f"Not searched: the content of files that {why} ({unread:,})."]
    for number, result in enumerate(results, start=1):
        relevance = "" if result.relevance is None else f" ({result.relevance}% relevance)"
        lines += [
            f"{number}. {one_line(result.title)}",
            f"   ID: {one_line(result.id)}",
            f"   Path: {one_line(result.path)}",
            f"   Match: {result.field}{relevance}",
        ]
        if result.snippet:
            lines.append(f"   Preview: {result.snippet}")
        lines.append("")
    if is_cut:
        lines.append("More files match: raise maxResults, or make the query more specific.")
    return "\n".join(lines).rstrip("\n") + "\n"
