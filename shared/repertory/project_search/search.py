"""The search of a project's files, whose texts are kept in memory as the index changes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from repertory.catalogue.item import Item
from repertory.errors import UsageError
from repertory.project_search.exact import containing
from repertory.project_search.folder import Folder
from repertory.project_search.fuzzy import Like, like
from repertory.project_search.query import (
    EMPTY_QUERY,
    MOST_RESULTS,
    ProjectAnswer,
    ProjectQuery,
    SearchType,
)
from repertory.project_search.report import NO_FILES, Result, report
from repertory.project_search.snippets import place_of, place_of_word, snippet
from repertory.project_search.texts import File, Texts
from repertory.project_search.words import Words
from repertory.search import lookup
from repertory.search.engine import SearchEngine
from repertory.search.query import MAX_QUERY_LENGTH


class ProjectSearch:
    """Searches the files of a project: the catalogue's documents and skills, and those beside them.

    Safe to use from several threads. The texts are read when they are first needed, and then only
    those that changed.

    Args:
        directory: The project's, which paths are shown from.
        whole: Whether all its text files are searched, not only those of the catalogue.
    """

    def __init__(self, directory: Path, *, whole: bool = False) -> None:
        self._texts = Texts(directory, Folder(directory) if whole else None)
        self._words = Words()

    def search(self, engine: SearchEngine, query: ProjectQuery) -> ProjectAnswer:
        """Search the files that an engine's index holds.

        In exact mode they are those that contain the query, whatever its case: first by title,
        then by path. In fuzzy mode, others that are like it follow, the most similar first.

        Raises:
            UsageError: The query is empty, or one of its numbers is out of range.
            StoreError: The texts cannot be read.
        """
        _validate(query)
        files = self._texts.of(engine)
        if not files:
            return ProjectAnswer(content=NO_FILES, total_results=0)
        found = list(islice(self._found(files, query), query.max_results))
        items = lookup.items(engine, [one.file.id for one in found if not one.file.item])
        results = [
            _result(one, item, query)
            for one in found
            if (item := one.file.item or items.get(one.file.id))
        ]
        return ProjectAnswer(content=report(query, results), total_results=len(results))

    def _found(self, files: Sequence[File], query: ProjectQuery) -> Iterator[Like]:
        """What is found, best first; what contains the query is like it altogether."""
        text, fields = query.search_query.casefold(), query.search_type.fields
        if not query.fuzzy_search:
            for file, field in containing(files, text, fields):
                yield Like(file, field, 1.0)
            return
        words = self._words.of(files)
        contains = set()
        for file, field in containing(words.may_contain(text), text, fields):
            contains.add(file)
            yield Like(file, field, 1.0)
        for one in like(words, text, fields, query.threshold):
            if one.file not in contains:
                yield one


def _result(found: Like, item: Item, query: ProjectQuery) -> Result:
    texts = {
        SearchType.TITLE: item.name,
        SearchType.CONTENT: item.body,
        SearchType.SYNOPSIS: item.description,
    }
    text = texts[found.field]
    if found.word:
        place = place_of_word(text, found.word)
    else:
        place = place_of(text, query.search_query.casefold())
    return Result(
        id=item.id,
        title=item.name,
        path=found.file.path,
        field=found.field,
        relevance=round(found.score * 100) if query.fuzzy_search else None,
        snippet=snippet(text, *place),
    )


def _validate(query: ProjectQuery) -> None:
    if not query.search_query.strip():
        raise UsageError(EMPTY_QUERY)
    if len(query.search_query) > MAX_QUERY_LENGTH:
        raise UsageError(
            f"searchQuery has {len(query.search_query):,} characters; {MAX_QUERY_LENGTH:,} is the "
            "limit."
        )
    if not 1 <= query.max_results <= MOST_RESULTS:
        raise UsageError(f"maxResults is {query.max_results}; it must be from 1 to {MOST_RESULTS}.")
    if not 0.0 <= query.threshold <= 1.0:
        raise UsageError(f"threshold is {query.threshold}; it must be from 0 to 1.")
