"""Our entry, which connects a host: to the program of this machine, or to the URL of a server."""

import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from repertory.agent_hosts.edits import Value
from repertory.agent_hosts.host import Host, Machine, Scope
from repertory.bounded import read_bytes
from repertory.errors import UsageError
from repertory.settings import Settings, files

VARIABLE = "REPERTORY_SERVER_API_KEY"  # of the key, in the environment of a host
MAX_KEY_SIZE = 4096  # bytes
_PLAIN = re.compile(r'[!"$->@-~]+')  # without a query and a fragment
_ENDPOINT = "/mcp"


class OurServer(msgspec.Struct, frozen=True):
    """The server that a host is to be connected to.

    Attributes:
        words: The program and its arguments.
        url: The MCP endpoint of a server; empty for the program.
        key: The key for that server; empty if it needs none.
        is_stored: Whether the program finds the key in the user's own configuration.
    """

    words: list[str]
    url: str = ""
    key: str = ""
    is_stored: bool = False

    def __repr__(self) -> str:
        """Without the key."""
        return f"OurServer({self.words!r}, {self.url!r})"


def entry_for(host: Host, scope: Scope, machine: Machine, server: OurServer) -> Value:
    """The entry that connects a host.

    A host that reaches no URL by its configuration gets the program, which asks the server.
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
    """Whether the entry has the key itself, since the host reads no variable for it."""
    is_found = server.is_stored and host.remote is None
    return bool(server.url and server.key and not host.reference and not is_found)


def endpoint(url: str) -> str:
    """The MCP endpoint of a server's URL.

    Raises:
        UsageError: It is no URL of a server.
    """
    try:
        parts = urlsplit(url)
        is_one = parts.port != 0 and parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:  # of its host or its port
        is_one = False
    if not is_one or "@" in parts.netloc or not _PLAIN.fullmatch(url):
        raise UsageError(f"--url is {url!r}; it must be a URL like https://repertory.example.com.")
    url = url.rstrip("/")
    return url if f"{_ENDPOINT}/" in f"{parts.path}/" else url + _ENDPOINT


def read_key(file: Path) -> str:
    """The key in a file.

    Raises:
        UsageError: It cannot be read, or is no single line.
    """
    try:
        key = read_bytes(str(file.expanduser()), MAX_KEY_SIZE).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"--key-file is {file}, which cannot be read: {reason}.") from error
    if not key or not key.isprintable():
        raise UsageError(f"--key-file is {file}; it must hold a key and nothing else.")
    return key


def words_of(settings: Settings) -> list[str]:
    """The words that start the MCP server as this process would.

    Agent hosts have an environment of their own, so the data directory is among them, unless the
    user's own configuration file names it or nothing does.
    """
    words = [*program(), "mcp"]
    own, _ = files({}, Path())
    if settings.origins.get("data_dir", str(own)) != str(own):
        words += ["--data-dir", str(settings.data_dir.absolute())]
    return words


def program() -> list[str]:
    """The words that start this program, with its absolute path.

    A link in the search path, such as that of pipx, is preferred to what it leads to: it stays
    when the program is updated.
    """
    name = "repertory.exe" if os.name == "nt" else "repertory"
    script = Path(sys.executable).parent / name
    found = shutil.which("repertory")
    if found and script.exists() and script.samefile(found):
        return [os.path.abspath(found)]  # noqa: PTH100 - a link stays
    return [str(script)] if script.exists() else [sys.executable, "-m", "repertory"]
