"""Reads the points of a collection over HTTP from a running server that has it open."""

from collections.abc import Iterator

import httpx

from repertory.backup import frames
from repertory.errors import StoreBusyError, StoreError
from repertory.index.vectors import Point
from repertory.remote.requests import RemoteServer
from repertory.remote.running import notes
from repertory.settings import Settings
from repertory.wire import EXPORT

TIMEOUT_S = 60.0  # for a page of points
CHUNK = 1 << 16  # bytes


def points(settings: Settings, collection: str) -> Iterator[Point]:
    """The points of a collection, from the server that has it open.

    Raises:
        StoreBusyError: No running server of this user has it open.
        StoreError: The connection to the server failed.
    """
    for note in notes(settings):
        # The server must prove that it wrote the note before it gets the token.
        if not RemoteServer(note.url, note.token, is_own=True).is_alive(TIMEOUT_S):
            continue
        headers = {"Authorization": f"Bearer {note.token}", "Accept-Encoding": "identity"}
        url = f"{note.url}{EXPORT}/{collection}"
        try:
            # Bypass proxies, so that they do not see the token.
            with httpx.stream(
                "GET", url, headers=headers, timeout=TIMEOUT_S, trust_env=False
            ) as answer:
                if answer.status_code == httpx.codes.OK:
                    yield from frames.points(_reader(answer), f"The answer of {note.url}")
                    return
        except httpx.HTTPError as error:
            raise StoreError(f"The server at {note.url} ended meanwhile ({error}).") from error
    raise StoreBusyError(
        f"Another command uses the index {collection}, perhaps in another directory; wait until it "
        "has finished, and try again."
    )


def _reader(answer: httpx.Response) -> frames.Read:
    chunks, rest = answer.iter_raw(CHUNK), bytearray()

    def read(size: int) -> bytes:
        while not rest:
            if not (more := next(chunks, b"")):
                return b""
            rest.extend(more)
        found = bytes(rest[:size])
        del rest[:size]
        return found

    return read
