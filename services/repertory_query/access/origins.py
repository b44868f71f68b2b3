"""Checks whether a browser's request comes from this server's pages or from another site."""

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from repertory.text import media_type_of


def check_origin(request: HTTPConnection, *, needed: bool = False) -> None:
    """Refuse a request that a page of another site sent.

    Browsers send the Origin header with forms, and Sec-Fetch-Site with images and the like. Other
    sites may only link to this server, which is a GET.

    Raises:
        HTTPException: 403 for such a request, or if the Origin header is needed but missing.
    """
    headers = request.headers
    origin = headers.get("origin")
    is_foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    if (
        (origin is None and needed)
        or (origin is not None and origin.partition("://")[2] != headers.get("host"))
        or (is_foreign and not _is_link(request))
    ):
        raise HTTPException(403, "A page of another site may not call this server.")


def _is_link(request: HTTPConnection) -> bool:
    is_page = request.headers.get("sec-fetch-dest") == "document"
    return is_page and request.scope["method"] == "GET"


def is_json(request: HTTPConnection) -> bool:
    """Whether a request contains JSON, which no page of another site can send."""
    return media_type_of(request.headers.get("content-type", "")) == "application/json"
