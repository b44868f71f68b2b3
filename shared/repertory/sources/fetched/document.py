"""Fetches content that consists of a single document."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

from typing_extensions import override

from repertory.sources.fetched.fetcher import Fetched, Fetcher, State
from repertory.sources.fetched.http import get
from repertory.sources.fetched.urls import shown


class DocumentFetcher(Fetcher):
    """Fetches one document over HTTP, if it has changed.

    Args:
        url: Its URL.
        place: The place of its file in the folder of the content.
        limit: Its maximum size in bytes.
        check: Raises a SourceError for an unusable document; the last one is then kept.
    """

    def __init__(
        self,
        url: str,
        place: str,
        limit: int,
        check: Callable[[bytes], object] = lambda _content: None,
    ) -> None:
        self.location = shown(url)
        self.cancelled = Event()
        self.url = url
        self._place = place
        self._limit = limit
        self._check = check

    @override
    def key(self) -> Mapping[str, Any]:
        return {"url": self.url}

    @override
    def fetch(self, into: Path, last: State, *, may_ask: bool) -> Fetched | None:
        document = get(self.url, self._limit, last.validators, self.cancelled.is_set)
        revision = hashlib.sha256(document.content).hexdigest()
        if document.is_unchanged or revision == last.revision:
            return None
        self._check(document.content)
        file = into / self._place
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_bytes(document.content)
        return Fetched(revision=revision, validators=document.validators)
