"""Search in a project's files, whose texts are kept in memory."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from repertory.catalogue.item import Item
from repertory.errors import UsageError
from repertory.project_search.files import File, ProjectFiles
from repertory.project_search.folder import Folder
from repertory.project_search.fuzzy import FuzzyMatch, fuzzy_matches
from repertory.project_search.query import (
    EMPTY_QUERY,
    MAX_RESULTS,
    ProjectAnswer,
    ProjectQuery,
    SearchType,
)
from repertory.project_search.report import NO_FILES, Result, report
from repertory.project_search.snippets import place_of, place_of_word, snippet
from repertory.project_search.word_index import WordIndexer
from repertory.search.engine import SearchEngine
from repertory.search.query import MAX_QUERY_LENGTH


class ProjectSearch:
    """Searches the catalogue's documents and skills, and optionally all text files. Thread-safe.

    Texts are read on first use; later only the changed ones are read.

    Args:
        directory: The project's directory; paths are shown relative to it.
        whole: Whether text files outside the catalogue are searched as well.
    """

    def __init__(self, directory: Path, *, whole: bool = False) -> None:
        self._texts = ProjectFiles(directory, Folder(directory) if whole else None)
        self._words = WordIndexer()

    def search(self, engine: SearchEngine, query: ProjectQuery) -> ProjectAnswer:
        """Search the project's files.

        Exact mode returns the files that contain the query, ignoring case: matching titles first,
        then by path. Fuzzy mode appends similar files, best match first.

        Raises:
            UsageError: The query is empty or too long, or a number is out of range.
            StoreError: The texts cannot be read.
        """
        _validate(query)
        files = self._texts.of(engine)
        if not files:
            return ProjectAnswer(content=NO_FILES, total_results=0)
        found = list(islice(self._found(files, query), query.max_results))
        items = engine.items([one.file.id for one in found if not one.file.item])
        results = [
            _result(one, item, query)
            for one in found
            if (item := one.file.item or items.get(one.file.id))
        ]
        return ProjectAnswer(content=report(query, results), total_results=len(results))

    def _found(self, files: Sequence[File], query: ProjectQuery) -> Iterator[FuzzyMatch]:
        """Yield the matches, best first; a file that contains the query scores 1."""
        text, fields = query.search_query.casefold(), query.search_type.fields
        if not query.fuzzy_search:
            for file, field in exact_matches(files, text, fields):
                yield FuzzyMatch(file, field, 1.0)
            return
        words = self._words.of(files)
        contains = set()
        for file, field in exact_matches(words.may_contain(text), text, fields):
            contains.add(file)
            yield FuzzyMatch(file, field, 1.0)
        for one in fuzzy_matches(words, text, fields, query.threshold):
            if one.file not in contains:
                yield one


def exact_matches(
    files: Sequence[File], query: str, fields: Sequence[SearchType]
) -> Iterator[tuple[File, SearchType]]:
    """Yield the files that contain a case-folded query, each with the first field containing it.

    Files with a matching title come first; otherwise their order stays. Of the fields, the title
    comes first.
    """
    if SearchType.TITLE in fields:
        titled = {file: SearchType.TITLE for file in files if query in file.title}
        yield from titled.items()
        files = [file for file in files if file not in titled]
        fields = fields[1:]
    for file in files:
        for field in fields:
            if query in getattr(file, field):
                yield file, field
                break


def _result(found: FuzzyMatch, item: Item, query: ProjectQuery) -> Result:
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
    if not 1 <= query.max_results <= MAX_RESULTS:
        raise UsageError(f"maxResults is {query.max_results}; it must be from 1 to {MAX_RESULTS}.")
    if not 0.0 <= query.threshold <= 1.0:
        raise UsageError(f"threshold is {query.threshold}; it must be from 0 to 1.")
