"""Deeply nested data counts as damaged, although readers raise another error for it.

Any program with access to Qdrant or Redis may write it, and any issuer may answer with it.
"""

from binascii import crc32
from http.server import BaseHTTPRequestHandler

import httpx2
import pytest

from repertory.catalogue.records import items_of_json
from repertory.coordination import snapshots
from repertory.errors import StoreCorruptError, StoreError
from repertory.index import layout
from repertory.index.keywords import snapshot
from repertory.index.qdrant_connection import QdrantServer
from repertory.live_search import visible_subsets
from repertory.sources.mcp import oauth
from tests.support.builders import DEEP_JSON
from tests.support.http_stub import serving

DEEP_LIST = b"\x91" * 100_000  # as MessagePack


def test_a_deep_record_is_damaged() -> None:
    """Searches also read the records that Qdrant sends with its answers."""
    record = DEEP_JSON.decode()
    with pytest.raises(StoreCorruptError, match="cannot be read"):
        layout.record({"item": "a", "record": record})
    assert list(items_of_json([record])) == []
    assert vars(visible_subsets)["_source_of"](record) is None


def test_a_deep_answer_of_qdrant_is_an_error() -> None:
    """The error is that of any answer in an unknown format."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(DEEP_JSON)))
        request.end_headers()
        request.wfile.write(DEEP_JSON)

    with serving(answer) as url, pytest.raises(StoreError, match="in an unknown format"):
        QdrantServer(url, None).exists("c")


def test_a_deep_keyword_snapshot_is_damaged() -> None:
    """Its manifest, which names the segments, is ignored; its head is an error."""
    assert vars(snapshots)["_decoded"](b"\x93\xc4\x00\x80" + DEEP_LIST) is None
    with pytest.raises(StoreCorruptError):
        snapshot.unpack(crc32(DEEP_LIST).to_bytes(4, "big") + DEEP_LIST, {})


def test_a_deep_answer_of_an_issuer_has_no_reason() -> None:
    """The renewal of a token then fails without one."""
    response = httpx2.Response(400, content=DEEP_JSON)
    assert vars(oauth)["_reason_of"](response) == ""
