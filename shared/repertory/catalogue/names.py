"""Names as people type them: split into words, or with nothing but their letters and digits."""

import re
import unicodedata

# Boundaries inside an identifier: readFile, HTTPServer, v2Beta, utf8.
_INSIDE = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)
_SEPARATORS = re.compile(r"[\W_]+")


def split_name(name: str) -> str:
    """Split at separators, case changes and digits: ``getHTTPUrl_v2`` → ``get http url v 2``."""
    words = _SEPARATORS.sub(" ", _INSIDE.sub(" ", unicodedata.normalize("NFKC", name)))
    return " ".join(words.lower().split())


def compact_name(name: str) -> str:
    """A name without case and separators: ``Read_File``, ``read-file`` and ``readFile`` are one."""
    return _SEPARATORS.sub("", unicodedata.normalize("NFKC", name).casefold())
