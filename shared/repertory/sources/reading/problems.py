"""Short constructors for problems."""

from repertory.sources.source import Problem, Severity


def warning(path: str, message: str, line: int | None = None, item: str = "") -> Problem:
    """Build a problem of an item that was loaded."""
    return Problem(severity=Severity.WARNING, message=message, path=path, line=line, item=item)


def error(path: str, message: str, line: int | None = None, item: str = "") -> Problem:
    """Build a problem of an item that was left out."""
    return Problem(severity=Severity.ERROR, message=message, path=path, line=line, item=item)
