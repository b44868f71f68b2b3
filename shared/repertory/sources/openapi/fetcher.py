"""Fetches an OpenAPI document."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from repertory.sources.fetched.fetcher import Fetched, Fetcher, State
from repertory.sources.fetched.http import get
from repertory.sources.fetched.urls import shown
from repertory.sources.openapi.document import MAX_SIZE, decoded, parse

FILE = "document"  # its name in the folder of its content


class DocumentFetcher(Fetcher):
    """Fetches one document over HTTP, if it has changed."""

    def __init__(self, url: str) -> None:
        self.location = shown(url)
        self._url = url

    @override
    def key(self) -> Mapping[str, Any]:
        return {"url": self._url}

    @override
    def fetch(self, into: Path, last: State, *, may_ask: bool) -> Fetched | None:
        validators = last.validators if last.revision else None
        document = get(self._url, MAX_SIZE, validators, lambda: self.cancelled)
        if document.is_unchanged:
            return None
        parse(decoded(document.content, self.location), self.location)  # else the last one stays
        (into / FILE).write_bytes(document.content)
        revision = hashlib.sha256(document.content).hexdigest()
        return Fetched(revision=revision, validators=document.validators)
