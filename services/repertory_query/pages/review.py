"""The review page: items to approve, and configurations to trust."""

from pathlib import Path

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.errors import ConfigurationError, UsageError
from repertory.keys import Scope
from repertory.project.trust_requests import (
    defined_by,
    described,
    env_files,
    trust_request,
    untrusted,
)
from repertory.project.workspace import Workspace
from repertory.review.versions import check_bound
from repertory.settings import PROJECT_FILE
from repertory.sources.registry import digest_to_trust
from repertory.system.untrusted_files import read_bytes
from repertory.trust import MAX_FILE_SIZE
from repertory_query.access.callers import OWNER
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.pages.page import PageRoute, page, posted_fields, redirection
from repertory_query.records.actions import Action
from repertory_query.records.auditing import name_items

PATH = "/status/reviews"
TRUST = "/status/trust"


class UntrustedFile(msgspec.Struct, frozen=True):
    """A configuration that waits for trust.

    Attributes:
        file: Its path.
        digest: The SHA-256 of the shown version.
        wishes: What it requests, in words without secrets.
    """

    file: str
    digest: str
    wishes: str


def routes(service: Service, pool: Pool) -> list[BaseRoute]:
    """The routes, which need the scope ``admin``; only the server's own user can grant trust."""
    store = service.parts.reviews

    async def reviews(request: Request) -> Response:
        """Show the items and configurations that wait."""

        def shown() -> Response:
            return page(
                request,
                "reviews.html",
                found=store.listing(),
                files=_files(service),
                may_trust=request.state.caller is OWNER,
                is_team=service.parts.is_team,
            )

        return await pool.run(shown)

    async def approve(request: Request) -> Response:
        """Approve one or all of the items, in the versions that were shown."""
        caller = request.state.caller
        sent = await posted_fields(request)
        try:  # JSON, because an id may contain line breaks
            items = msgspec.json.decode(sent.get("items", "[]"), type=list[str])
        except msgspec.MsgspecError as error:
            raise HTTPException(400, "The items must be a list of strings.") from error
        check_bound(items)
        name_items(request, await pool.run(lambda: store.approve(items, caller.who)))
        return redirection(request, PATH)

    async def trust(request: Request) -> Response:
        """Trust a configuration in the version that was shown."""
        sent = await posted_fields(request)
        name_items(request, [sent.get("file", "")])
        # Trusted programs run as the user who started the server.
        if service.parts.is_team or request.state.caller is not OWNER:
            text = "Only the user who started this server may trust configurations."
            raise HTTPException(403, text)
        await pool.run(lambda: _trust(service.workspace.reloaded(), sent))
        return redirection(request, PATH)

    return [
        PageRoute("GET", PATH, reviews, action=None, scope=Scope.ADMIN),
        PageRoute("POST", PATH, approve, action=Action("approve"), scope=Scope.ADMIN),
        PageRoute("POST", TRUST, trust, action=Action("trust"), scope=Scope.ADMIN),
    ]


def _files(service: Service) -> list[UntrustedFile]:
    """The configurations that wait for trust; empty for a team, which has them elsewhere."""
    if service.parts.is_team:
        return []
    try:
        return waiting_in(service.workspace.reloaded())
    except ConfigurationError:  # the status shows it; items can still be approved
        return []


def waiting_in(workspace: Workspace) -> list[UntrustedFile]:
    """The configurations of a catalogue that wait for trust."""
    settings = workspace.settings
    found = []
    for file in dict.fromkeys(untrusted(workspace).files):
        try:
            digest = digest_to_trust(file, read_bytes(str(file), MAX_FILE_SIZE))
            wishes = described(defined_by(file, workspace))
        except (OSError, UsageError, ConfigurationError):  # the state of the source shows it
            continue
        found.append(UntrustedFile(str(file), digest, wishes))
    if settings.file and not settings.named and settings.file.name == PROJECT_FILE:
        asked = trust_request(settings.file, settings.flags, settings.variables)
        if asked.wishes:
            found.append(UntrustedFile(str(settings.file), asked.digest, ", ".join(asked.wishes)))
    return found


def _trust(workspace: Workspace, sent: dict[str, str]) -> None:
    """Trust a waiting configuration, if it is unchanged since it was shown.

    Raises:
        UsageError: It does not wait any more, or has changed.
    """
    known = [one for one in waiting_in(workspace) if one.file == sent.get("file")]
    if not known or known[0].digest != sent.get("digest"):
        raise UsageError("The file has changed since it was shown; open the page again.")
    file = Path(known[0].file)
    if file.name == PROJECT_FILE:
        workspace.trust.trust(file, known[0].digest)
        return
    environments = env_files(defined_by(file, workspace))
    workspace.trust.trust(file, known[0].digest, environments, digest_to_trust)
