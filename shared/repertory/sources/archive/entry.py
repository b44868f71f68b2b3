"""The configuration entry of an archive, and the recognition of its address."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from repertory.errors import ConfigurationError
from repertory.sources.adding import Address, Recognised
from repertory.sources.archive.fetcher import ArchiveFetcher
from repertory.sources.entry import check_options, name_from, source_path
from repertory.sources.fetched.content import Content
from repertory.sources.fetched.folders import build_folders, folder_in
from repertory.sources.fetched.source import OPTIONS, content_of
from repertory.sources.fetched.urls import is_http, shown
from repertory.sources.source import Source

ENDINGS = (".zip", ".skill", ".tar.gz", ".tgz")
LOCAL_REFRESH_S = 60.0  # for local files, whose signature is quick to check

_SHA256 = re.compile(r"[0-9a-f]{64}")


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the sources of an archive, without fetching it.

    Args:
        entry: ``name``, and ``url`` or ``path``. Optional: ``sha256``, which the archive must have;
            ``folder``; ``reads``, the types of sources that read it; and ``refresh``.
        base: The folder that relative paths start from.

    Raises:
        ConfigurationError: The entry is invalid.
    """
    check_options(entry, "url", "path", "sha256", "folder", "reads", *OPTIONS)
    folder = folder_in(entry, "the archive")
    refresh = {} if "url" in entry else {"refresh": LOCAL_REFRESH_S}
    return build_folders({**refresh, **entry}, _content(entry, base), folder)


def _content(entry: Mapping[str, Any], base: Path) -> Content:
    url, sha256 = entry.get("url"), entry.get("sha256", "")
    if url is not None and not (isinstance(url, str) and is_http(url)):
        raise ConfigurationError(
            f"The `url` of an archive is {shown(str(url))!r}; it must start with https:// or "
            "http://. For a local file, use `path`."
        )
    if sha256 and not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
        raise ConfigurationError(f"`sha256` is {sha256!r}; it must be 64 lower-case hex digits.")
    address = url or str(source_path(entry, base))
    return content_of(ArchiveFetcher(address, sha256), entry)


def recognise(address: Address) -> Recognised | None:
    """Recognise a URL or a file with the file name extension of an archive."""
    path = address.path
    if path is not None and not path.is_file():
        return None
    last = path.name if path else unquote(urlsplit(address.text).path.rpartition("/")[2])
    ending = next((one for one in ENDINGS if last.lower().endswith(one)), "")
    if not ending or (path is None and not address.is_http):
        return None
    where = {"path": str(path)} if path else {"url": address.text}
    name = name_from(last[: -len(ending)]) or "archive"
    options = {key: address.options[key] for key in ("sha256", "folder") if key in address.options}
    if "sha256" in options:
        options["sha256"] = options["sha256"].lower()
    return Recognised(
        title="an archive", entry={"type": "archive", **where, "name": name, **options}
    )
