"""The types of sources that ``repertory add`` recognises by their address.

To add a type, write a ``recognise`` next to its ``build``, and add its name here.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from repertory.errors import UsageError
from repertory.sources.entry import path_of
from repertory.sources.fetched.http import Response, get
from repertory.sources.fetched.urls import is_http, shown
from repertory.sources.registry import implementation

MAX_PROBE_SIZE = 32 * 2**20  # bytes of a document that is read to recognise its type

# In order of precedence. git is last, because nearly any URL may be that of a git repository. Each
# type has ``recognise(address: Address) -> Recognised | None``, which raises SourceError if it
# needs the content at the address and cannot read it.
_TYPES = ("archive", "marketplace", "mcp-registry", "openapi", "git")


class Recognised(msgspec.Struct, frozen=True, kw_only=True):
    """A recognised address.

    Attributes:
        title: What it is, such as "a git repository".
        entry: Its ``[[sources]]`` entry, with a ``type``, a ``name`` and the type's own options.
        notes: Sentences that the user should read before it is added.
    """

    title: str
    entry: Mapping[str, Any]
    notes: tuple[str, ...] = ()


class Address:
    """The address that the user gave: a URL or a local path.

    Args:
        text: The address as written; a ``file://`` URL counts as a path.
        registry: The URL of the MCP registry for names; empty for the official one.
        directory: The folder that a relative path starts from.
        options: The options that the user gave, of ``ref``, ``folder`` and ``sha256``.
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
        """The file or folder at the address; None if there is no such path.

        Raises:
            ConfigurationError: The address begins with the home of an unknown user.
        """
        if "://" in self.text:
            return None
        path = os.path.abspath(path_of(self.text, self._directory))  # noqa: PTH100 - links stay
        return Path(path) if os.path.exists(path) else None  # noqa: PTH110 - False below a closed folder

    @property
    def is_http(self) -> bool:
        """Whether it is an HTTP or HTTPS URL."""
        return is_http(self.text)

    def document(self) -> Response:
        """The response of the HTTP server at the URL, requested once for all types.

        Raises:
            SourceError: The request failed.
        """
        if self._document is None:
            self._document = get(self.text, MAX_PROBE_SIZE)
        return self._document


def reconsider(found: Recognised, content: Path) -> Recognised:
    """Recognise a git repository again by its fetched content: it may be a marketplace.

    Args:
        found: The result for its address.
        content: The folder with its content.
    """
    if found.entry["type"] != "git":
        return found
    better: Recognised | None = implementation("marketplace").in_repository(found.entry, content)
    return better or found


def recognise(address: Address) -> Recognised:
    """Recognise the type of an address.

    Raises:
        UsageError: It has no known type.
        ConfigurationError: It begins with the home of an unknown user.
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
    elif address.text.startswith((".", "/", "~")):
        message = f"{shown(address.text)} does not exist."
    raise UsageError(message)
