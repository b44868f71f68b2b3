"""A client for MCP registries, which finds servers by words and reads one version of a server."""

import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import quote, urlencode

from repertory.errors import SourceError
from repertory.sources.fetched.http import get
from repertory.sources.fetched.urls import shown
from repertory.sources.mcp_registry.document import Listed, listed, parsed

OFFICIAL_URL = "https://registry.modelcontextprotocol.io"
API = "v0.1"
MAX_ANSWER_SIZE = 8 * 2**20  # bytes
PAGE_SIZE = 100
MAX_PAGES = 5  # per word
MAX_WORDS = 4
MAX_CURSOR_LENGTH = 1_000

_VERSIONED = re.compile(r"/v0(?:\.1)?$")


class Registry:
    """A registry over HTTP.

    Args:
        url: Its URL, with or without the version of the API.
        is_cancelled: Whether to end soon.
    """

    def __init__(self, url: str, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        self._is_cancelled = is_cancelled
        url = url.rstrip("/")
        self._base = url if _VERSIONED.search(url) else f"{url}/{API}"
        self.location = shown(url)

    def server(self, name: str, version: str) -> Listed:
        """Read one version of a server; ``latest`` is its newest.

        Raises:
            SourceError: The registry does not have it, or its response is invalid.
        """
        try:
            content = self._get(f"/{quote(name, safe='')}/versions/{quote(version, safe='')}")
        except SourceError as error:
            raise SourceError(f"{name}@{version} was not found: {error}") from error
        found = listed(parsed(content, self.location))
        if found is None or found.server.name != name:
            raise SourceError(
                f"{self.location} answered {name}@{version} with an invalid document."
            )
        if version not in ("latest", found.server.version):
            raise SourceError(
                f"{self.location} answered {name}@{version} with version {found.server.version}."
            )
        return found

    def find(self, words: str, limit: int) -> list[Listed]:
        """Find the latest versions of servers by words in their names, titles and descriptions.

        The registry searches names for one text only, so each word is searched separately, and the
        servers are ranked by the number of words that they contain.

        Raises:
            SourceError: The registry cannot be reached.
        """
        wanted = list(dict.fromkeys(words.lower().split()))[:MAX_WORDS]
        found: dict[str, Listed] = {}
        for word in wanted:
            for one in self._pages(word):
                if one.status != "deleted":
                    found.setdefault(one.server.name, one)
        score: Counter[str] = Counter()
        for name, one in found.items():
            text = f"{name} {one.server.title} {one.server.description}".lower()
            score[name] = sum(2 * (word in name.lower()) + (word in text) for word in wanted)
        order = sorted(found, key=lambda name: (-score[name], name))
        return [found[name] for name in order[:limit]]

    def _get(self, place: str) -> bytes:
        """The response at a place below the list of servers."""
        url = f"{self._base}/servers{place}"
        return get(url, MAX_ANSWER_SIZE, is_cancelled=self._is_cancelled).content

    def _pages(self, word: str) -> list[Listed]:
        found: list[Listed] = []
        cursor, seen = "", set[str]()
        for _ in range(MAX_PAGES):
            query = {"search": word, "version": "latest", "limit": PAGE_SIZE}
            if cursor:
                query["cursor"] = cursor
            page = parsed(self._get(f"?{urlencode(query)}"), self.location)
            servers = page.get("servers")
            found += filter(None, map(listed, servers if isinstance(servers, list) else ()))
            metadata = page.get("metadata")
            following = metadata.get("nextCursor") if isinstance(metadata, dict) else None
            if not isinstance(following, str) or not 0 < len(following) <= MAX_CURSOR_LENGTH:
                break
            if following in seen:
                break
            seen.add(following)
            cursor = following
        return found
