"""Bounded requests over HTTP, for documents that others publish."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import msgspec

from repertory.errors import SourceError
from repertory.files import private
from repertory.sources.fetched.urls import check_step, is_http, shown
from repertory.text import one_line

if TYPE_CHECKING:
    import httpx

MAX_REDIRECTS = 5
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0  # without a byte
TOTAL_TIMEOUT_S = 300.0
_VALIDATORS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a server answered.

    Attributes:
        url: Where it was in the end, after redirects.
        content: The body.
        content_type: As the server says, in lower case, without parameters.
        validators: What it sent to recognise the content again; for the next ``get``.
    """

    url: str
    content: bytes
    content_type: str = ""
    validators: dict[str, str] = {}


def get(url: str, limit: int, validators: Mapping[str, str] | None = None) -> Document:
    """Get a document.

    Args:
        url: Its URL, over HTTP or HTTPS. A user and password in it are sent.
        limit: The most bytes that it may have.
        validators: Those of the last answer; see ``is_unchanged``.

    Returns:
        The document; one without content and with the same validators if it is unchanged.

    Raises:
        SourceError: It cannot be reached, is too large, or leads elsewhere too often.
    """
    ...
