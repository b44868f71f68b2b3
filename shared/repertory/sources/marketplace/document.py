"""Fetches a marketplace that is published as a document, without the plugins beside it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from repertory.sources.fetched.fetcher import Fetched, Fetcher, State
from repertory.sources.fetched.http import get
from repertory.sources.fetched.servers import MAX_SIZE
from repertory.sources.fetched.urls import shown
from repertory.sources.marketplace.listing import LISTING


class DocumentFetcher(Fetcher):
    """Fetches a ``marketplace.json`` over HTTP, into the place that it has in a repository."""

    def __init__(self, url: str) -> None:
        self.location = shown(url)
        self.url = url

    @override
    def key(self) -> Mapping[str, Any]:
        return {"document": self.url}

    @override
    def fetch(self, into: Path, last: State, *, may_ask: bool) -> Fetched | None:
        document = get(self.url, MAX_SIZE, last.validators, lambda: self.cancelled)
        revision = hashlib.sha256(document.content).hexdigest()
        if document.is_unchanged or revision == last.revision:
            return None
        file = into / LISTING
        file.parent.mkdir(mode=0o700)
        file.write_bytes(document.content)
        return Fetched(revision=revision, validators=document.validators)
