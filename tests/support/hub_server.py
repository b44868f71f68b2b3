"""A small server with the protocol of the Hugging Face hub that can misbehave."""

import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LARGE = ".onnx"  # files that the hub stores outside git and lists with a SHA-256
REVISION = "0123456789abcdef0123456789abcdef01234567"


class HubServer:
    """Serves one folder as one repository, on a free local port.

    Attributes:
        requests: ``METHOD path`` of each request, in order.
        cut_once: Names of files whose first download breaks off in the middle.
        lie_about: Names of files whose content differs from the listed checksum.
        pause: Seconds between the two halves of a large file.
    """

    def __init__(self, repository: str, folder: Path) -> None:
        self.repository = repository
        self.files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        self.requests: list[str] = []
        self.cut_once: set[str] = set()
        self.lie_about: set[str] = set()
        self.pause = 0.0
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        """Stop serving; connections are refused from now on."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def listing(self) -> dict[str, Any]:
        """The hub's description of the repository, with sizes and checksums."""
        siblings = []
        for name, content in self.files.items():
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            entry = {"rfilename": name, "size": len(content), "blobId": blob}
            if name.endswith(LARGE):
                digest = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"size": len(content), "sha256": digest, "pointerSize": 130}
            siblings.append(entry)
        return {"id": self.repository, "sha": REVISION, "siblings": siblings}


class _Handler(BaseHTTPRequestHandler):
    server_hub: HubServer
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        hub = self.server_hub
        path = self.path.partition("?")[0]
        hub.requests.append(f"{self.command} {path}")
        start = f"/{hub.repository}/resolve/{REVISION}/"
        if path.startswith(f"/api/models/{hub.repository}"):
            self._send(json.dumps(hub.listing()).encode(), body=body)
        elif path.startswith(start) and (name := path.removeprefix(start)) in hub.files:
            self._send_file(name, body=body)
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _send(self, content: bytes, *, body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def _send_file(self, name: str, *, body: bool) -> None:
        hub = self.server_hub
        content = hub.files[name]
        etag = hashlib.sha256(content).hexdigest()
        if name in hub.lie_about:
            content = content[::-1]
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("Accept-Ranges", "bytes")
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if not body:
            return
        half = (start + len(content)) // 2
        self.wfile.write(content[start:half])
        self.wfile.flush()
        if name in hub.cut_once and not start:
            hub.cut_once.remove(name)
            self.close_connection = True
            return
        if name.endswith(LARGE):
            time.sleep(hub.pause)
        self.wfile.write(content[half:])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        """Log nothing."""
