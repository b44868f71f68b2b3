"""The configuration entry of a git repository, and the recognition of its address."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repertory.sources.adding import Address, Recognised
from repertory.sources.entry import check_options, name_from
from repertory.sources.fetched.folders import build_folders, folder_in
from repertory.sources.fetched.source import OPTIONS, content_of
from repertory.sources.fetched.urls import shown
from repertory.sources.git.fetcher import GitFetcher
from repertory.sources.git.url import checked, checked_ref, on_github, protocol_of
from repertory.sources.source import Source


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the sources of a repository, without fetching it.

    Args:
        entry: ``url`` and ``name``. Optional: ``ref``, a branch, tag or commit; ``folder``;
            ``reads``, the types of sources that read it; and ``refresh``, in seconds.
        base: The folder that a relative path of a repository starts from.

    Raises:
        ConfigurationError: The entry is invalid.
    """
    check_options(entry, "url", "ref", "folder", "reads", *OPTIONS)
    return build_folders(entry, content_of(fetcher_of(entry, base), entry))


def fetcher_of(entry: Mapping[str, Any], base: Path) -> GitFetcher:
    """The fetcher of an entry with ``url``, ``ref`` and ``folder``.

    Raises:
        ConfigurationError: The entry is invalid.
    """
    url, protocol = checked(entry.get("url"), base)
    ref = checked_ref(entry["ref"]) if entry.get("ref") else ""
    return GitFetcher(url, protocol, ref, folder_in(entry, shown(url)))


def recognise(address: Address) -> Recognised | None:
    """Recognise the URL of a repository, ``owner/name`` on GitHub, or a local repository."""
    if path := address.path:
        if not ((path / ".git").exists() or (path / "HEAD").is_file()):
            return None
        url = str(path)
    else:
        url = on_github(address.text) or address.text
        if not protocol_of(url):
            return None
    options = {key: address.options[key] for key in ("ref", "folder") if key in address.options}
    return Recognised(
        title="a git repository", entry={"type": "git", "url": url, "name": name_of(url), **options}
    )


def name_of(url: str) -> str:
    """A name for a repository: the last part of the path in its URL, without ``.git``."""
    last = re.split(r"[/:]", url.partition("?")[0].rstrip("/"))[-1]
    return name_from(last.removesuffix(".git")) or "added"
