"""The types of sources that ``repertory add`` recognises by their address.

A new type has a ``recognise`` beside its ``build``, and its name here.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from repertory.errors import UsageError
from repertory.sources.fetched.http import Response, get
from repertory.sources.fetched.urls import is_http, shown
from repertory.sources.registry import implementation

MAX_PROBE_SIZE = 32 * 2**20  # bytes of a document that is read to recognise its type

# In this order; the first that recognises an address takes it, and nearly any URL may be that of a
# git repository. Each has ``recognise(address: Address) -> Recognised | None``, which raises
# SourceError if it must look at what is there and cannot.
_TYPES = ("archive", "marketplace", "mcp-registry", "openapi", "git")


class Recognised(msgspec.Struct, frozen=True, kw_only=True):
    """What an address is.

    Attributes:
        title: The kind of thing in words, such as "a git repository".
        entry: Its ``[[sources]]`` entry, with a ``type``, a ``name`` and the type's own options.
        notes: What the user should know before it is added, in sentences.
    """

    title: str
    entry: Mapping[str, Any]
    notes: tuple[str, ...] = ()


class Address:
    """What the user named: a URL, or a path of this machine.

    Args:
        text: It, as written; a URL of a file is a path.
        registry: The URL of the MCP registry that names are looked up in; empty for the official.
        directory: The folder that a relative path starts from.
        options: What else the user said: ``ref``, ``folder``, ``sha256``; only those given.
    """

    def __init__(
        self, text: str, directory: Path, options: Mapping[str, str], registry: str = ""
    ) -> None:
        self.text = text.removeprefix("file://")
        self.options = options
        self.registry = registry
        self._directory = directory
        self._document: Response | None = None

    @property
    def path(self) -> Path | None:
        """The file or folder, if there is one of this name."""
        path = Path(os.path.abspath(self._directory / Path(self.text).expanduser()))  # noqa: PTH100 - links stay
        is_there = os.path.exists(path)  # noqa: PTH110 - False also below a closed folder
        return path if "://" not in self.text and is_there else None

    @property
    def is_http(self) -> bool:
        """Whether it is a URL over HTTP."""
        return is_http(self.text)

    def document(self) -> Response:
        """What an HTTP server answers at the URL, asked once for all types.

        Raises:
            SourceError: There is no answer, or an error.
        """
        if self._document is None:
            self._document = get(self.text, MAX_PROBE_SIZE)
        return self._document


def reconsider(found: Recognised, content: Path) -> Recognised:
    """Find out what a repository is, now that its content is there.

    Args:
        found: What its address is.
        content: The content.
    """
    if found.entry["type"] != "git":
        return found
    better: Recognised | None = implementation("marketplace").in_repository(found.entry, content)
    return better or found


def recognise(address: Address) -> Recognised:
    """Find out what an address is.

    Raises:
        UsageError: It is of no known type.
        SourceError: It cannot be reached.
    """
    for kind in _TYPES:
        found: Recognised | None = implementation(kind).recognise(address)
        if found is not None:
            return found
    message = (
        f"{shown(address.text)} is not recognised; name the URL of a git repository, of a plugin "
        "marketplace, of an archive (.zip, .tar.gz, .tgz or .skill) or of an OpenAPI 3 document, "
        "or mcp-registry:NAME."
    )
    if address.path:
        message += " A folder of this machine goes into a `[[sources]]` entry of repertory.toml."
    raise UsageError(message)
