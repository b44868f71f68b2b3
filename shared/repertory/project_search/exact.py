"""Files that contain a query, ignoring case."""

from collections.abc import Iterator, Sequence

from repertory.project_search.files import File
from repertory.project_search.query import SearchType


def exact_matches(
    files: Sequence[File], query: str, fields: Sequence[SearchType]
) -> Iterator[tuple[File, SearchType]]:
    """Yield the files that contain a query, each with the first field that contains it.

    Files with a matching title come first; otherwise their order stays.

    Args:
        files: The files to search.
        query: The case-folded query.
        fields: The fields to search, the title first.
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
