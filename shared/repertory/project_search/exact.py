"""Files that contain a query as it is written, whatever its case."""

from collections.abc import Iterator, Sequence

from repertory.project_search.query import SearchType
from repertory.project_search.texts import File


def containing(
    files: Sequence[File], query: str, fields: Sequence[SearchType]
) -> Iterator[tuple[File, SearchType]]:
    """The files that contain a query, each with the first of the fields that does.

    Those whose title contains it come first; otherwise they keep their order.

    Args:
        files: What to search.
        query: What is looked for, case-folded.
        fields: Where to look, the title first.
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
