"""The MCP servers that fetched content declares, written as configurations that await trust.

Trust covers the bytes of a configuration, but a server may run programs from the fetched content.
So the files of such a server are copied to a folder named after their digest, and its configuration
names that folder. If the files change, so does the configuration, which then awaits trust again.
"""

import contextlib
import functools
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from repertory.sources.fetched.fetcher import Declared
from repertory.sources.reading.structured import Defect, load
from repertory.system.files import half_of, make_private, write_atomically
from repertory.system.untrusted_files import read_bytes

SERVERS = "servers"  # the folder of the configurations
LIST = "servers.json"  # a file that changes whenever a configuration does
ROOTS = "roots"  # the files of the servers, by digest
PLUGIN_ROOT = "${CLAUDE_PLUGIN_ROOT}"
MAX_CONFIGURATIONS = 500  # per source
MAX_SERVERS = 100  # per configuration
MAX_SIZE = 4 * 2**20  # bytes of a document


def entries_of(folder: Path) -> list[dict[str, Any]]:
    """The configuration entries of the servers that content declares.

    Args:
        folder: The folder of the content.
    """
    return [
        {"type": "mcp", "config": str(path)} for path in sorted((folder / SERVERS).glob("*.json"))
    ]


def declared_in(root: Path, name: str) -> tuple[Declared, ...]:
    """The servers in the ``.mcp.json`` of a folder; empty if it is missing or invalid."""
    table = table_of(read_json(root / ".mcp.json"))
    return (Declared(name=name, root=root, servers=table),) if table else ()


def table_of(document: object) -> dict[str, dict[str, Any]]:
    """The servers of an MCP configuration by name; empty if it is invalid or has too many."""
    if not isinstance(document, dict):
        return {}
    table = document.get("mcpServers", document)
    if not isinstance(table, dict) or len(table) > MAX_SERVERS:
        return {}
    return {str(name): one for name, one in table.items() if isinstance(one, dict)}


def read_json(path: Path) -> object:
    """Read an untrusted JSON document; None if it is missing, too large or invalid."""
    try:
        return as_json(read_bytes(str(path), MAX_SIZE))
    except OSError:
        return None


def as_json(data: bytes) -> object:
    """The value of JSON text; None if it is invalid."""
    try:
        document = load(data.decode("utf-8-sig"), "json")
    except UnicodeDecodeError:
        return None
    return None if isinstance(document, Defect) else document


def write_configurations(folder: Path, declared: Iterable[Declared]) -> None:
    """Write the configurations of the declared servers, and remove all others.

    Call it before the content is replaced, so that no trusted configuration runs changed files.

    Raises:
        OSError: They cannot be written.
    """
    copy_of = functools.cache(functools.partial(_copied, folder / ROOTS))  # many may share a folder
    texts: dict[str, str] = {}
    for one in declared:
        table = {name: _run_in_copy(one.root, raw, copy_of) for name, raw in one.servers.items()}
        encoded = msgspec.json.format(msgspec.json.encode({"mcpServers": table}), indent=2)
        texts[f"{one.name}.json"] = f"{encoded.decode()}\n"
    for name, text in texts.items():
        _write_if_changed(folder / SERVERS / name, text.encode())
    for file in (folder / SERVERS).glob("*.json"):
        if file.name not in texts:
            file.unlink(missing_ok=True)
    if texts or (folder / LIST).exists():
        _write_if_changed(folder / LIST, msgspec.json.encode(texts, order="deterministic"))


def remove_unused_copies(folder: Path) -> None:
    """Remove the copies of servers' folders that no configuration names."""
    texts = [file.read_text("utf-8") for file in (folder / SERVERS).glob("*.json")]
    for root in (folder / ROOTS).glob("*"):
        if not any(root.name in text for text in texts):
            shutil.rmtree(root, ignore_errors=True)


def _run_in_copy(
    root: Path, server: dict[str, Any], copy_of: Callable[[Path], Path]
) -> dict[str, Any]:
    """The configuration of a server; a program runs in a copy of its folder that never changes."""
    if not server.get("command"):
        return server
    copy = str(copy_of(root))
    replaced = _replaced(server, copy)
    cwd = replaced.get("cwd")
    return {**replaced, "cwd": os.path.join(copy, cwd) if isinstance(cwd, str) else copy}  # noqa: PTH118 - an absolute one stays


def _replaced(value: Any, root: str) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        return value.replace(PLUGIN_ROOT, root)
    if isinstance(value, list):
        return [_replaced(one, root) for one in value]
    if isinstance(value, dict):
        return {key: _replaced(one, root) for key, one in value.items()}
    return value


def _copied(roots: Path, root: Path) -> Path:
    """Copy a folder to one named after the digest of its files."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        mode = path.stat().st_mode & 0o100
        digest.update(f"{path.relative_to(root).as_posix()}\0{mode}\0{content}\n".encode())
    target = roots / digest.hexdigest()[:32]
    if not target.exists():
        make_private(roots)
        half = half_of(target)
        shutil.copytree(root, half)
        try:
            half.rename(target)
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return target


def _write_if_changed(file: Path, data: bytes) -> None:
    with contextlib.suppress(OSError):
        if file.read_bytes() == data:
            return
    write_atomically(file, data)
