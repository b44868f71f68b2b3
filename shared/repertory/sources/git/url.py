"""The URLs and refs of git repositories."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from repertory.errors import ConfigurationError
from repertory.sources.entry import path_of
from repertory.sources.fetched.urls import shown
from repertory.text import is_clean

MAX_LENGTH = 2_000  # characters
PROTOCOLS = {"https": "https", "http": "http", "ssh": "ssh", "git+ssh": "ssh", "git": "git"}

_SCP = re.compile(r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*:(?!//)[^\s:]\S*")
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@-]*")
_ON_GITHUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.][A-Za-z0-9_.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def protocol_of(url: str) -> str:
    """The protocol that git may use for a URL; empty if it is not a valid remote URL.

    ``host:path`` means ssh, as in git. No part may start with a dash.
    """
    if not is_clean(url) or len(url) > MAX_LENGTH or re.search(r"\s", url):
        return ""
    if "://" not in url:
        return "ssh" if _SCP.fullmatch(url) else ""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    user = parts.username or ""
    if not host or host.startswith("-") or user.startswith("-") or parts.path.startswith("/-"):
        return ""
    return PROTOCOLS.get(parts.scheme, "")


def on_github(repository: str) -> str:
    """The URL of ``owner/name`` on GitHub; empty if it has another form."""
    return f"https://github.com/{repository}.git" if _ON_GITHUB.fullmatch(repository) else ""


def checked(url: object, base: Path) -> tuple[str, str]:
    """A repository's URL and its protocol; a local path becomes absolute.

    Raises:
        ConfigurationError: It is not the URL of a repository.
    """
    if isinstance(url, str) and (protocol := protocol_of(url)):
        return url, protocol
    local = url.removeprefix("file://") if isinstance(url, str) else ""
    if local.startswith(("/", "~", "./", "../")) and is_clean(local):
        return str(path_of(local, base)), "file"
    name = shown(url) if isinstance(url, str) else repr(url)
    raise ConfigurationError(
        f"{name} is not the URL of a git repository; use one like https://host/team/skills.git, "
        "ssh://git@host/skills.git or git@host:team/skills.git, or a path that starts with / or ./"
    )


def checked_ref(ref: object) -> str:
    """A branch, a tag, or a whole commit id.

    Raises:
        ConfigurationError: It is invalid.
    """
    if isinstance(ref, str) and len(ref) <= MAX_LENGTH and _REF.fullmatch(ref) and ".." not in ref:
        return ref
    raise ConfigurationError(f"{ref!r} is not a ref; name a branch, a tag or a whole commit id.")


def is_commit(ref: str) -> bool:
    """Whether a ref is a whole commit id."""
    return bool(_COMMIT.fullmatch(ref))
