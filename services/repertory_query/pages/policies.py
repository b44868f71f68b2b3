"""The pages of the policies, which change `repertory.toml` after showing the change."""

import os
import threading
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.catalogue.policies import rules
from repertory.catalogue.policy import FIELDS
from repertory.errors import ConfigurationError, RepertoryError
from repertory.keys import Scope
from repertory.project.configuration_file import project_file, read, rewrite
from repertory.project.workspace import Workspace
from repertory.text import normalized, one_line
from repertory.trust import digest_of
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.pages.page import PageRoute, page, posted_fields, redirection
from repertory_query.pages.policy_tables import (
    changed_lines,
    policies_in,
    with_policy,
    without_policy,
)
from repertory_query.records.actions import Action
from repertory_query.records.auditing import name_items

PATH = "/status/policies"
LISTS = ("pin", "aliases")
MAX_MATCHES = 10  # shown

_SENT = ("at", "version", "action", "item", *FIELDS)  # the fields of a form
_CHANGED = "The file has changed since this was shown; choose the policy again."


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A requested change of a policy.

    Attributes:
        at: The number of the policy, from 0; None for a new one.
        version: The digest of the file that the form was made from.
        policy: The policy's item and fields.
        removes: Whether the policy is removed.
    """

    at: int | None
    version: str
    policy: dict[str, Any]
    removes: bool = False


class ConfigurationFile:
    """The configuration file of a server's project.

    Args:
        service: The running server.
    """

    def __init__(self, service: Service) -> None:
        self.workspace: Workspace = service.workspace.reloaded()
        self.path: Path = project_file(self.workspace.settings, self.workspace.directory)
        self.text = read(self.path)
        self.version = digest_of(self.text.encode())
        self.policies = policies_in(self.text)

    @property
    def name(self) -> str:
        """The path of the file as shown to people."""
        return str(self.path).removeprefix(f"{self.workspace.directory}{os.sep}")

    @property
    def others(self) -> list[dict[str, Any]]:
        """The policies of other files."""
        given = [one for one in self.workspace.settings.rules if one.file != str(self.path)]
        return [{"item": one.item, **one.changes, "file": one.file} for one in given]

    def after(self, change: Change) -> str:
        """The text after a change.

        Raises:
            ConfigurationError: The policy is invalid, or the file can only be edited by hand.
        """
        if change.removes and change.at is not None:
            return without_policy(self.text, change.at)
        rules([change.policy], self.name)
        return with_policy(self.text, change.at, change.policy)

    def write(self, text: str) -> None:
        """Replace the text of the file, which stays trusted if it was."""
        rewrite(self.path, text, self.workspace.settings, self.workspace.directory)


def routes(service: Service, pool: Pool) -> list[BaseRoute]:
    """The routes, which need the scope ``admin``."""
    writing = threading.Lock()

    async def policies(request: Request) -> Response:
        """List the policies."""
        return await pool.run(partial(_list, request, service))

    async def edit(request: Request) -> Response:
        """Show a form for a policy, or for a new one."""
        return await pool.run(partial(_edit, request, service))

    async def preview(request: Request) -> Response:
        """Show the change before it is written."""
        sent = await posted_fields(request)
        return await pool.run(partial(_preview, request, service, sent))

    async def write(request: Request) -> Response:
        """Write the change that was shown."""
        sent = await posted_fields(request)
        name_items(request, [sent.get("item", "")])

        def written() -> Response:
            with writing:
                return _write(request, service, sent)

        return await pool.run(written)

    return [
        PageRoute("GET", PATH, policies, action=None, scope=Scope.ADMIN),
        PageRoute("POST", PATH, write, action=Action("policy"), scope=Scope.ADMIN),
        PageRoute("GET", f"{PATH}/edit", edit, action=None, scope=Scope.ADMIN),
        PageRoute("POST", f"{PATH}/preview", preview, action=None, scope=Scope.ADMIN),
    ]


def _list(request: Request, service: Service, status: int = 200, detail: str = "") -> Response:
    """The list of policies. In a team, the configuration is where the watch service runs."""
    if service.parts.is_team:
        return page(request, "policies.html", status, file=None, detail=detail, notices=())
    file = ConfigurationFile(service)
    notices = file.workspace.notices
    return page(request, "policies.html", status, file=file, detail=detail, notices=notices)


def _edit(request: Request, service: Service) -> Response:
    if service.parts.is_team:
        return _list(request, service)
    file, given = ConfigurationFile(service), request.query_params
    at = _number(given.get("at", ""))
    if at is not None and at >= len(file.policies):
        return _list(request, service, 404, "There is no such policy any more.")
    item = given.get("item", "")
    if at is None and item:  # its policy, if it has one already
        at = next((n for n, one in enumerate(file.policies) if one.get("item") == item), None)
    policy = {"item": item} if at is None else file.policies[at]
    policy |= {name: _with(policy.get(name), given[name]) for name in LISTS if given.get(name)}
    change = Change(at=at, version=file.version, policy=policy)
    return page(request, "policy.html", file=file, change=change, detail="", fields=_texts(policy))


def _preview(request: Request, service: Service, sent: Mapping[str, str]) -> Response:
    def shown(file: ConfigurationFile, change: Change, text: str) -> Response:
        return page(
            request,
            "policy_change.html",
            file=file,
            change=change,
            sent={name: sent[name] for name in _SENT if name in sent},
            lines=changed_lines(file.text, text, file.name),
            matches=_matches(service, str(change.policy.get("item", ""))),
        )

    return _changed(request, service, sent, shown)


def _write(request: Request, service: Service, sent: Mapping[str, str]) -> Response:
    def written(file: ConfigurationFile, _: Change, text: str) -> Response:
        file.write(text)
        return redirection(request, PATH)

    return _changed(request, service, sent, written)


def _changed(
    request: Request,
    service: Service,
    sent: Mapping[str, str],
    answer: Callable[[ConfigurationFile, Change, str], Response],
) -> Response:
    """The result of ``answer`` for a valid change, or else the page that says what is wrong."""
    if service.parts.is_team:
        return _list(request, service, 409)
    file, change = ConfigurationFile(service), _change_of(sent)
    if change.version != file.version:
        return _list(request, service, 409, _CHANGED)
    try:
        return answer(file, change, file.after(change))
    except ConfigurationError as error:
        return _form_again(request, file, change, sent, str(error))


def _form_again(
    request: Request, file: ConfigurationFile, change: Change, sent: Mapping[str, str], detail: str
) -> Response:
    """The same form with its values, and with the error."""
    fields = {field: sent.get(field, "") for field in ("item", *FIELDS)}
    return page(request, "policy.html", 422, file=file, change=change, detail=detail, fields=fields)


def _change_of(sent: Mapping[str, str]) -> Change:
    """The change requested by a form. Empty fields count as missing; lists have one item a line."""
    policy: dict[str, Any] = {"item": sent.get("item", "").strip()}
    for field in FIELDS:
        text = sent.get(field, "").strip()
        if not text:
            continue
        if field in LISTS:
            policy[field] = [line.strip() for line in text.splitlines() if line.strip()]
        else:
            policy[field] = _boost(text) if field == "boost" else " ".join(text.split())
    return Change(
        at=_number(sent.get("at", "")),
        version=sent.get("version", ""),
        policy=policy,
        removes=sent.get("action") == "remove",
    )


def _with(phrases: object, phrase: str) -> list[str]:
    """The phrases of a policy, with another one added."""
    known = phrases if isinstance(phrases, list) else [phrases] if phrases else []
    return [*dict.fromkeys([*map(str, known), one_line(phrase)])]


def _boost(text: str) -> float | str:
    """A number, or the text if it is not a number, which the check of the file then refuses."""
    try:
        return float(text)
    except ValueError:
        return text


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _texts(policy: Mapping[str, Any]) -> dict[str, str]:
    """The values of a policy as the texts of a form."""
    found = {}
    for field in ("item", *FIELDS):
        value = policy.get(field, "")
        found[field] = "\n".join(map(str, value)) if isinstance(value, list) else str(value)
    return found


def _matches(service: Service, item: str) -> list[str] | None:
    """The ids of the first items to which a policy applies; None without an index."""
    try:
        keywords = service.engine.keywords
    except RepertoryError:
        return None
    found, wanted = [], normalized("NFC", item)
    for entry in keywords.all():
        keys = [normalized("NFC", key) for key in (entry.id, entry.name)]
        if wanted in keys or any(fnmatchcase(key, wanted) for key in keys):
            found.append(entry.id)
            if len(found) > MAX_MATCHES:
                break
    return found
