"""Problems, said briefly."""

from repertory.sources.source import Problem, Severity


def warning(path: str, message: str, line: int | None = None, item: str = "") -> Problem:
    """A problem that loads the item all the same."""
    return Problem(severity=Severity.WARNING, message=message, path=path, line=line, item=item)


def error(path: str, message: str, line: int | None = None, item: str = "") -> Problem:
    """A problem that leaves the item out."""
    return Problem(severity=Severity.ERROR, message=message, path=path, line=line, item=item)
