"""Builds Repertory's entry, which starts the program on this machine or names a server's URL."""

import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from repertory.agent_hosts.edits import Value
from repertory.agent_hosts.host import Host, Machine, Scope
from repertory.errors import UsageError
from repertory.settings import Settings, files
from repertory.system import python_process
from repertory.system.paths import expanded
from repertory.system.untrusted_files import read_bytes

VARIABLE = "REPERTORY_SERVER_API_KEY"  # the environment variable with the key
MAX_KEY_SIZE = 4096  # bytes
_PLAIN = re.compile(r'[!"$->@-~]+')  # no ``?`` and ``#``, so no query or fragment
_ENDPOINT = "/mcp"


class OurServer(msgspec.Struct, frozen=True):
    """The server to connect a host to.

    Attributes:
        words: The command line of the program.
        url: The MCP endpoint of a remote server; empty to start the program.
        key: The API key of the server; empty if it needs no key.
        is_stored: Whether the user's own configuration has the key, so the program finds it there.
    """

    words: list[str]
    url: str = ""
    key: str = ""
    is_stored: bool = False

    def __repr__(self) -> str:
        """Omit the key."""
        return f"OurServer({self.words!r}, {self.url!r})"


def entry_for(host: Host, scope: Scope, machine: Machine, server: OurServer) -> Value:
    """The entry that connects a host.

    If the host's configuration cannot name a URL, the entry starts the program, which forwards to
    the server.
    """
    directory = host.places[scope].directory
    words = list(server.words)
    if not server.url:
        if directory:
            in_ours = directory.startswith("{")
            words += ["--directory", str(machine.folder(directory)) if in_ours else directory]
        return host.local(words)
    if host.remote is None:
        base = server.url.removesuffix(_ENDPOINT)
        entry = host.local([*words, "--server-url", base])
        return {**entry, "env": {VARIABLE: server.key}} if writes_key(host, server) else entry
    if not server.key:
        return host.remote(server.url, "")
    return host.remote(
        server.url, f"Bearer {host.reference % VARIABLE if host.reference else server.key}"
    )


def writes_key(host: Host, server: OurServer) -> bool:
    """Whether the entry contains the key itself, because no variable or setting can supply it."""
    is_found = server.is_stored and host.remote is None
    return bool(server.url and server.key and not host.reference and not is_found)


def endpoint(url: str) -> str:
    """The MCP endpoint for the URL of a server.

    Raises:
        UsageError: The URL is invalid, or has credentials, a query or a fragment.
    """
    try:
        parts = urlsplit(url)
        is_one = parts.port != 0 and parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:  # an invalid host or port
        is_one = False
    if not is_one or "@" in parts.netloc or not _PLAIN.fullmatch(url):
        raise UsageError(f"--url is {url!r}; it must be a URL like https://repertory.example.com.")
    url = url.rstrip("/")
    return url if f"{_ENDPOINT}/" in f"{parts.path}/" else url + _ENDPOINT


def read_key(file: Path) -> str:
    """Read the key from a file.

    Raises:
        UsageError: The file cannot be read, or does not have a single line with a key.
    """
    try:
        key = read_bytes(str(expanded(file)), MAX_KEY_SIZE).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"--key-file is {file}, which cannot be read: {reason}.") from error
    if not key or not key.isprintable():
        raise UsageError(f"--key-file is {file}; it must hold a key and nothing else.")
    return key


def words_of(settings: Settings) -> list[str]:
    """The command line that starts the MCP server with the settings of this process.

    Agent hosts have a different environment, so the data directory is passed as an option, unless
    it is the default or comes from the user's own configuration file.
    """
    words = [*program(), "mcp"]
    own, _ = files({}, Path())
    if settings.origins.get("data_dir", str(own)) != str(own):
        words += ["--data-dir", str(settings.data_dir.absolute())]
    return words


def program() -> list[str]:
    """The command line that starts this program, with an absolute path.

    A link in ``PATH``, such as the one that pipx creates, is preferred to its target, because the
    link remains valid when the program is updated.
    """
    name = "repertory.exe" if os.name == "nt" else "repertory"
    script = Path(sys.executable).parent / name
    found = shutil.which("repertory")
    if found and script.exists() and script.samefile(found):
        return [os.path.abspath(found)]  # noqa: PTH100 - keeps links
    return [str(script)] if script.exists() else python_process.command("repertory")
