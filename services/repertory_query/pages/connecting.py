"""Snippets to copy: requests for the command line, and entries that connect agent hosts."""

import json
import shlex

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory import keys
from repertory.agent_hosts.document import written
from repertory.agent_hosts.host import Scope, this_machine
from repertory.agent_hosts.our_entry import VARIABLE, OurServer, endpoint, entry_for, words_of
from repertory.agent_hosts.table import HOSTS
from repertory.catalogue.item import Item
from repertory.wire import V1
from repertory_query.access.callers import OWNER, Access
from repertory_query.backend.service import Service
from repertory_query.pages.argument_form import example_of
from repertory_query.pages.page import PageRoute, item_address, page

PATH = "/connect"
YOUR_KEY = "YOUR-KEY"  # placeholder for hosts that cannot read a variable


class Snippet(msgspec.Struct, frozen=True):
    """An entry for the configuration of an agent host.

    Attributes:
        title: The host's name.
        file: The name of its configuration file.
        command: The command that writes the entry.
        text: The entry.
        check: How to check that the host uses it.
    """

    title: str
    file: str
    command: str
    text: str
    check: str


def routes(service: Service, access: Access) -> list[BaseRoute]:
    """The route of the page with the entries of all hosts."""

    def shown(request: Request) -> Response:
        is_own = request.state.caller is OWNER
        return page(
            request,
            "connect.html",
            snippets=snippets(service, access, access.url(request), is_own=is_own),
            needs_key=access.takes_keys and not is_own,
            variable=VARIABLE,
        )

    async def connect(request: Request) -> Response:
        """Show how to connect each agent host to this server."""
        return await run_in_threadpool(shown, request)

    return [PageRoute("GET", PATH, connect, action=None, scope=keys.Scope.READ)]


def key_in_shell(request: Request, access: Access) -> str:
    """The shell expression for the caller's key; empty if no key is needed."""
    if request.state.caller is OWNER:
        return "$(repertory keys token)"
    return f"${VARIABLE}" if access.takes_keys else ""


def snippets(service: Service, access: Access, url: str, *, is_own: bool) -> list[Snippet]:
    """The entry of each agent host.

    For the user who started this server, the entry starts the program, which is on the same
    machine. For all others, it has the URL.
    """
    key = YOUR_KEY if access.takes_keys else ""
    words = words_of(service.workspace.settings) if is_own else ["repertory", "mcp"]
    server = OurServer(words) if is_own else OurServer(words, endpoint(url), key)
    machine = this_machine(service.workspace.directory)
    return [
        Snippet(
            host.title,
            host.places[Scope.USER].files[0],
            f"repertory connect {host.id}" + ("" if is_own else f" --url {shlex.quote(url)}"),
            written(host.syntax, host.keys, entry_for(host, Scope.USER, machine, server)),
            host.check,
        )
        for host in HOSTS
    ]


def curl_commands(item: Item, url: str, key: str, *, may_call: bool) -> dict[str, str]:
    """Commands that read an item and, if allowed, call it, by their title.

    Args:
        item: The item.
        url: The URL of the server.
        key: The shell expression for the key; empty if no key is needed.
        may_call: Whether the caller may call it.
    """
    curl = f'curl --oauth2-bearer "{key}"' if key else "curl"
    name = item_address(item.id)
    found = {"Read it": f"{curl} {shlex.quote(f'{url}{V1}/items/{name}')}"}
    if may_call:
        # ASCII, so that no character in the item can manipulate a terminal.
        body = shlex.quote(json.dumps(example_of(item)))
        found["Call it"] = f"{curl} {shlex.quote(f'{url}{V1}/tools/{name}')} --json {body}"
    return found
