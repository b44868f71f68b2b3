"""Search in a project's files, whose texts are kept in memory."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from repertory.errors import UsageError
from repertory.project_search.file import File, Texts, composed, folded
from repertory.project_search.files import ProjectFiles
from repertory.project_search.folder import Folder
from repertory.project_search.fuzzy import MIN_MATCH_LENGTH, FuzzyMatch, fuzzy_matches
from repertory.project_search.query import (
    EMPTY_QUERY,
    MAX_RESULTS,
    Field,
    ProjectAnswer,
    ProjectQuery,
)
from repertory.project_search.report import NO_FILES, Result, report
from repertory.project_search.snippets import place_of, place_of_word, snippet
from repertory.project_search.word_index import WordIndexer
from repertory.search.engine import SearchEngine
from repertory.search.query import MAX_QUERY_LENGTH


class ProjectSearch:
    """Searches the files of a directory and the documents and skills of a catalogue. Thread-safe.

    Texts are read on first use; later only the changed ones are read.

    Args:
        directory: The project's directory; paths are shown relative to it.
        folder: Reads the directory; None to search the catalogue only.
    """

    def __init__(self, directory: Path, folder: Folder | None = None) -> None:
        self.has_folder = folder is not None
        self._files = ProjectFiles(directory, folder)
        self._words = WordIndexer()

    def search(self, engine: SearchEngine | None, query: ProjectQuery) -> ProjectAnswer:
        """Search the project's files.

        Exact mode returns the files that contain the query, ignoring case: first in the title or
        name, then in the text, last only in the path; ties are broken by path. Fuzzy mode appends
        similar files, best match first. It needs at least two characters.

        Args:
            engine: The engine of the catalogue; None if it is unavailable.
            query: The query.

        Raises:
            UsageError: The query is empty or too long, or a number is out of range.
            StoreError: The files cannot be read.
        """
        _validate(query)
        files = self._files.of(engine)
        if not files:
            return ProjectAnswer(content=NO_FILES, total_results=0)
        most = min(query.max_results, MAX_RESULTS)
        found = list(islice(self._found(files, query), most + 1))
        is_cut = len(found) > most
        del found[most:]
        texts = self._files.texts([one.file for one in found], engine)
        results = [_result(one, texts[one.file.id], query) for one in found if one.file.id in texts]
        content = report(query, results, self._files.unread, is_cut=is_cut)
        return ProjectAnswer(content=content, total_results=len(results))

    def _found(self, files: Sequence[File], query: ProjectQuery) -> Iterator[FuzzyMatch]:
        """Yield the matches, best first; a file that contains the query scores 1."""
        text, fields = folded(query.search_query), query.search_type.fields
        if query.fuzzy_search and len(text.strip()) < MIN_MATCH_LENGTH:
            return
        words = self._words.of(files) if query.fuzzy_search else None
        candidates = words.candidates(text, fields) if words else files
        contains = set()
        for file, field in exact_matches(candidates, text, fields):
            contains.add(file)
            yield FuzzyMatch(file, field, 1.0)
        if words:
            for one in fuzzy_matches(words, text, fields, query.threshold):
                if one.file not in contains:
                    yield one


def exact_matches(
    files: Sequence[File], query: str, fields: Sequence[Field]
) -> Iterator[tuple[File, Field]]:
    """Yield the files that contain a folded query, each with the first field containing it.

    Matches in the title or name come first and matches in the path last; otherwise the order is
    kept.
    """
    for group in (Field.TITLE, Field.NAME), (Field.CONTENT, Field.SYNOPSIS), (Field.PATH,):
        searched = [field for field in group if field in fields]
        rest = []
        for file in files:
            for field in searched:
                if query in getattr(file, field):
                    yield file, field
                    break
            else:
                rest.append(file)
        files = rest


def _result(found: FuzzyMatch, texts: Texts, query: ProjectQuery) -> Result:
    place = found.file.place
    fields = {
        Field.TITLE: texts.title,
        Field.NAME: place.rpartition("/")[2],
        Field.CONTENT: texts.content,
        Field.SYNOPSIS: texts.synopsis,
        Field.PATH: place,
    }
    text = composed(fields[found.field])
    if found.word:
        span = place_of_word(text, found.word)
    else:
        span = place_of(text, folded(query.search_query))
    return Result(
        id=found.file.id,
        title=texts.title,
        path=place,
        field=found.field.search_type,
        relevance=round(found.score * 100) if query.fuzzy_search else None,
        snippet=snippet(text, *span),
    )


def _validate(query: ProjectQuery) -> None:
    if not query.search_query.strip():
        raise UsageError(EMPTY_QUERY)
    if len(query.search_query) > MAX_QUERY_LENGTH:
        raise UsageError(
            f"searchQuery has {len(query.search_query):,} characters; {MAX_QUERY_LENGTH:,} is the "
            "limit."
        )
    if query.max_results < 1:
        raise UsageError(f"maxResults is {query.max_results}; it must be 1 or more.")
    if not 0.0 <= query.threshold <= 1.0:
        raise UsageError(f"threshold is {query.threshold}; it must be from 0 to 1.")
