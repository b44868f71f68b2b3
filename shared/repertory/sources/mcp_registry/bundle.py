"""MCP bundles (``.mcpb``): archives with a program and a manifest with its launch command."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from repertory.errors import SourceError
from repertory.sources.archive.unpacking import unpack
from repertory.sources.fetched.http import get
from repertory.sources.fetched.servers import PLUGIN_ROOT, read_json
from repertory.sources.fetched.urls import shown
from repertory.sources.fetched.writing import Writer
from repertory.sources.mcp_registry.document import Package, safe
from repertory.sources.mcp_registry.launch import ENVIRONMENT_NAME, NOT_IN_NAMES
from repertory.system.addresses import is_confidential

MAX_SIZE = 64 * 2**20  # bytes
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REFERENCE = re.compile(r"\$\{([^{}]{0,100})\}")


class _Setting(msgspec.Struct, frozen=True):
    default: Any = None
    sensitive: bool = False


class _Config(msgspec.Struct, frozen=True):
    command: str
    args: list[str] = []
    env: dict[str, str] = {}


class _Program(msgspec.Struct, frozen=True):
    mcp_config: _Config


class _Manifest(msgspec.Struct, frozen=True):
    server: _Program
    user_config: dict[str, _Setting] = {}


def unpacked(
    package: Package, into: Path, is_cancelled: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """Fetch a bundle, check its digest, unpack it, and return its MCP configuration entry.

    Args:
        package: The package, of the type ``mcpb``.
        into: A new folder.
        is_cancelled: Whether to end soon.

    Raises:
        SourceError: It cannot be fetched, has another digest, or has no valid manifest.
    """
    url = package.identifier
    if not is_confidential(url):
        raise SourceError(f"The bundle {shown(url)} is not at an HTTPS URL.")
    if not _SHA256.fullmatch(package.file_sha256):
        raise SourceError(f"The bundle {shown(url)} has no SHA-256, so it was not fetched.")
    content = get(url, MAX_SIZE, is_cancelled=is_cancelled).content
    digest = hashlib.sha256(content).hexdigest()
    if digest != package.file_sha256:
        raise SourceError(
            f"The bundle {shown(url)} has the SHA-256 {digest}, and its registry says "
            f"{package.file_sha256}; it was not used."
        )
    into.mkdir()
    unpack(content, Writer(into, shown(url)))
    try:
        manifest = msgspec.convert(read_json(into / "manifest.json"), _Manifest)
        return _entry(manifest)
    except (msgspec.ValidationError, ValueError) as exc:
        raise SourceError(f"The manifest.json of {shown(url)} is invalid: {exc}.") from exc


def _entry(manifest: _Manifest) -> dict[str, Any]:
    config = manifest.server.mcp_config

    def fill(text: str) -> str:
        safe(text.replace("${", "{"), "a text of its manifest")
        return _REFERENCE.sub(lambda found: _value(found[1], manifest), text)

    if not all(map(ENVIRONMENT_NAME.fullmatch, config.env)):
        raise ValueError("it sets a variable with an invalid name")
    return {
        "command": fill(config.command),
        "args": [fill(one) for one in config.args],
        "env": {name: fill(value) for name, value in config.env.items()},
    }


def _value(name: str, manifest: _Manifest) -> str:
    """The value of a reference: the bundle's folder, or a user setting."""
    if name == "__dirname":
        return PLUGIN_ROOT
    if name in ("/", "pathSeparator"):
        return "/"
    kind, _, key = name.partition(".")
    setting = manifest.user_config.get(key) if kind == "user_config" else None
    if setting is None:
        raise ValueError(f"it refers to {name!r}, which is unknown")
    given = setting.default
    if not setting.sensitive and isinstance(given, str | int | float) and "${" not in str(given):
        return safe(str(given), "a setting")
    return f"${{input:{NOT_IN_NAMES.sub('_', key)}}}"
