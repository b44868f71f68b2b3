"""The configuration entry of a plugin marketplace, and the recognition of its address."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from repertory.errors import ConfigurationError
from repertory.sources.adding import Address, Recognised
from repertory.sources.entry import check_options, checked_name
from repertory.sources.fetched.content import Content
from repertory.sources.fetched.document import DocumentFetcher
from repertory.sources.fetched.servers import MAX_SIZE, as_json, read_json
from repertory.sources.fetched.source import OPTIONS, content_of, interval_of
from repertory.sources.fetched.urls import is_http
from repertory.sources.git.entry import fetcher_of, name_of
from repertory.sources.marketplace.fetcher import MarketplaceFetcher
from repertory.sources.marketplace.listing import LISTING, MANIFEST, is_listing, read_listing
from repertory.sources.marketplace.source import PluginPrompts, PluginSkills
from repertory.sources.source import Source


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the sources of a marketplace, without fetching it.

    Args:
        entry: ``name``, and ``url`` of a git repository or of a document that ends with ``.json``.
            Optional: ``ref`` of a repository, and ``refresh``.
        base: The folder that a relative path of a repository starts from.

    Raises:
        ConfigurationError: The entry is invalid.
    """
    check_options(entry, "url", "ref", *OPTIONS)
    content, interval = _content(entry, base), interval_of(entry)
    name = checked_name(entry.get("name"))
    skills = PluginSkills(name=name, path=content.path)
    prompts = PluginPrompts(name=f"{name}-prompts", path=content.path)
    return [skills.attach(content, interval), prompts.attach(content, interval)]


def _content(entry: Mapping[str, Any], base: Path) -> Content:
    url = entry.get("url")
    if isinstance(url, str) and _is_document(url):
        if entry.get("ref"):
            raise ConfigurationError("A marketplace that is a document has no `ref`.")
        return content_of(MarketplaceFetcher(DocumentFetcher(url, LISTING, MAX_SIZE)), entry)
    return content_of(MarketplaceFetcher(fetcher_of(entry, base)), entry)


def recognise(address: Address) -> Recognised | None:
    """Recognise the URL of a list of plugins; for repositories see ``in_repository``."""
    if not (address.is_http and _is_document(address.text)):
        return None
    document = as_json(address.document().content)
    if not is_listing(document):
        return None
    listing = read_listing(document, address.text)
    name = listing.name or urlsplit(address.text).hostname or "marketplace"
    return _recognised({"url": address.text, "name": name})


def in_repository(entry: Mapping[str, Any], content: Path) -> Recognised | None:
    """Recognise a repository with a marketplace, or one that is a plugin.

    Args:
        entry: The entry of the repository.
        content: The folder with its content.
    """
    if entry.get("folder") or entry.get("reads"):
        return None
    document = read_json(content / LISTING)
    if not is_listing(document) and read_json(content / MANIFEST) is None:
        return None
    name = read_listing(document, LISTING).name if is_listing(document) else ""
    ref = {"ref": entry["ref"]} if "ref" in entry else {}
    return _recognised({"url": entry["url"], "name": name or name_of(str(entry["url"])), **ref})


def _recognised(entry: Mapping[str, Any]) -> Recognised:
    return Recognised(title="a plugin marketplace", entry={"type": "marketplace", **entry})


def _is_document(url: str) -> bool:
    return is_http(url) and urlsplit(url).path.lower().endswith(".json")
