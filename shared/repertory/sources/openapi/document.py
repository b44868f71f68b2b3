"""An OpenAPI document: parsing within limits, and resolving internal references."""

import codecs
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from repertory.errors import SourceError
from repertory.sources.reading.structured import Defect, decoded, load
from repertory.text import cut, one_line

MAX_SIZE = 32 * 2**20  # bytes
MAX_VALUES = 2_000_000  # estimated; a value takes up to a hundred times the memory of its text
MAX_REPEATED = 1_000_000  # characters and values that the aliases of a YAML document repeat
MAX_REFERENCES = 20  # in a chain

_OPENAPI = re.compile(r"""(?:^|[{,])[^\S\n]{0,99}["']?openapi["']?\s{0,9}:\s{0,9}["']?3\.""", re.M)
_SWAGGER = re.compile(r"""(?:^|[{,])[^\S\n]{0,99}["']?swagger["']?\s{0,9}:\s{0,9}["']?2\.""", re.M)


class BrokenError(Exception):
    """A part of a document that cannot be used; the message says why, with "it" as its subject."""


class Document:
    """A parsed document.

    Args:
        root: The whole document as plain JSON.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root

    @property
    def title(self) -> str:
        """Its title, on one line; may be empty."""
        info = self.root.get("info")
        title = info.get("title") if isinstance(info, Mapping) else None
        return one_line(title) if isinstance(title, str) else ""

    def at(self, reference: str) -> Any:  # noqa: ANN401 - any JSON
        """The target of a reference.

        Raises:
            BrokenError: The target is outside of the document or missing.
        """
        shown = cut(one_line(reference), 200)
        if not reference.startswith("#/"):
            raise BrokenError(
                f"it refers to {shown}, which is outside of the document, so not read"
            )
        found: Any = self.root
        for part in unquote(reference[2:]).split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdecimal() and int(key[:9]) < len(found):
                found = found[int(key[:9])]
            else:
                raise BrokenError(f"it refers to {shown}, which is missing")
        return found

    def resolved(self, value: object, what: str) -> Mapping[str, Any]:
        """An object of the document, with references resolved.

        Raises:
            BrokenError: It is not an object, or a reference cannot be resolved.
        """
        for _ in range(MAX_REFERENCES):
            if not isinstance(value, Mapping):
                raise BrokenError(f"its {what} is not an object")
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            value = self.at(reference)
        raise BrokenError(f"its {what} is a chain of more than {MAX_REFERENCES} references")


def parse(content: bytes, place: str) -> Document:
    """Parse a document in JSON or YAML.

    Args:
        content: The document.
        place: Its file or URL, for messages.

    Raises:
        SourceError: It is not an OpenAPI 3 document, or has too many values; the message names the
            line, if known.
    """
    if sum(map(content.count, (b",", b"[", b"{", b"\n"))) > MAX_VALUES:
        raise SourceError(f"{place} has more than about {MAX_VALUES:,} values; split it.")
    text = decoded(content, place, SourceError)
    syntax = "json" if text.lstrip()[:1] == "{" else "yaml"
    root = load(text, syntax, MAX_REPEATED)
    if isinstance(root, Defect):
        where = f"{place}:{root.line}" if root.line else place
        raise SourceError(f"{where}: {root.message}.")
    version = root.get("openapi") if isinstance(root, dict) else None
    if not isinstance(root, dict) or not str(version).startswith("3."):
        old = isinstance(root, dict) and "swagger" in root
        hint = "it is Swagger 2; convert it to OpenAPI 3" if old else "`openapi` must be 3.0 or 3.1"
        raise SourceError(f"{place} is not an OpenAPI 3 document: {hint}.")
    if not isinstance(root.get("paths", {}), dict):
        raise SourceError(f"{place}: `paths` must be an object.")
    return Document(root)


def is_openapi(content: bytes) -> bool:
    """Whether content looks like an OpenAPI document, including version 2."""
    text = content.removeprefix(codecs.BOM_UTF8).decode("latin-1")
    return _OPENAPI.search(text) is not None or _SWAGGER.search(text) is not None


def pointer(*parts: str) -> str:
    """A JSON pointer, shortened for a message."""
    steps = (part.replace("~", "~0").replace("/", "~1") for part in parts)
    return cut(one_line("#/" + "/".join(steps)), 200)
