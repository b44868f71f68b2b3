"""One searchable file of a project, and its texts."""

import msgspec

from repertory.text import normalized


class File(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One searchable file. The object is reused until the file or its item changes.

    The attributes from ``title`` on are searched and ``folded``.

    Attributes:
        id: The id of its item; ``files/`` plus its place if it is not in the catalogue.
        place: Its path, relative to the project's directory if it is inside.
        disk: Its absolute path, from which its text is read; empty if only its item is known.
        title: The title of the document or the name of the skill; otherwise the file's name.
        name: The file's name.
        content: Its text; for an item, its body.
        synopsis: The description of the document or skill.
        path: Its path inside the project's directory; empty if it is outside.
    """

    id: str
    place: str
    disk: str = ""
    title: str
    name: str
    content: str
    synopsis: str
    path: str = ""


class Texts(msgspec.Struct, frozen=True):
    """The texts of a file, as written."""

    title: str
    content: str
    synopsis: str


def composed(text: str) -> str:
    """Normalize a text to NFC, and CRLF line ends to LF."""
    return normalized("NFC", text.replace("\r\n", "\n"))


def folded(text: str) -> str:
    """The text for comparisons: ``composed`` and case-folded."""
    return composed(text).casefold()
