"""A local web API that publishes the OpenAPI document that FastAPI generates."""

import asyncio
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import uvicorn
from fastapi import (
    Body,
    Cookie,
    Depends,
    FastAPI,
    File,
    Form,
    Header,
    HTTPException,
    Query,
    Request,
    Response,
    UploadFile,
)
from fastapi.responses import PlainTextResponse, RedirectResponse, StreamingResponse
from fastapi.security import (
    APIKeyCookie,
    APIKeyHeader,
    APIKeyQuery,
    HTTPAuthorizationCredentials,
    HTTPBasic,
    HTTPBasicCredentials,
    HTTPBearer,
    OAuth2PasswordBearer,
)
from pydantic import BaseModel
from starlette.types import ASGIApp

from tests.support.listening import on_thread

SECRET = "s3cret-t0ken"

_BEARER = HTTPBearer(scheme_name="bearer")
_OAUTH = OAuth2PasswordBearer(tokenUrl="token", scheme_name="oauth")
_BASIC = HTTPBasic(scheme_name="basic")
_HEADER = APIKeyHeader(name="X-Key", scheme_name="headerKey")
_QUERY = APIKeyQuery(name="key", scheme_name="queryKey")
_COOKIE = APIKeyCookie(name="session", scheme_name="cookieKey")


class Place(BaseModel):
    """Where a pet lives."""

    town: str
    street: str | None = None


class NewPet(BaseModel):
    """A pet to add."""

    name: str
    tags: list[str] = []
    home: Place | None = None


class Pet(NewPet):
    """A pet that was added."""

    id: int


def pets() -> FastAPI:
    """A pet shop with all parameter locations, body types, and authentication schemes."""
    app = FastAPI(title="Pets")
    known: dict[int, Pet] = {}

    @app.post("/pets", status_code=201, tags=["shop"])
    def add_pet(pet: NewPet) -> Pet:
        """Add a pet to the shop."""
        known[len(known) + 1] = added = Pet(id=len(known) + 1, **pet.model_dump())
        return added

    @app.get("/pets/{pet_id}", tags=["shop"])
    def get_pet(pet_id: int) -> Pet:
        """Get a pet by its number."""
        if pet_id not in known:
            raise HTTPException(404, f"There is no pet {pet_id}.")
        return known[pet_id]

    @app.delete("/pets/{pet_id}", status_code=204, operation_id="removePet")
    def remove(pet_id: int) -> None:
        """Remove a pet."""
        known.pop(pet_id)

    @app.get("/find/{kind}")
    def find(
        kind: str,
        tag: Annotated[list[str], Query()] = [],  # noqa: B006 - FastAPI's own form
        x_trace: Annotated[str, Header()] = "",
        theme: Annotated[str, Cookie()] = "",
    ) -> dict[str, Any]:
        """Find pets of a kind."""
        return {"kind": kind, "tag": tag, "trace": x_trace, "theme": theme}

    @app.post("/sign")
    def sign(name: Annotated[str, Form()], age: Annotated[int, Form()] = 0) -> dict[str, Any]:
        """Sign the guest book."""
        return {"name": name, "age": age}

    @app.post("/photos")
    async def upload(
        photo: Annotated[UploadFile, File()], title: Annotated[str, Form()]
    ) -> dict[str, Any]:
        """Upload a photo."""
        content = await photo.read()
        return {"title": title, "type": photo.content_type, "size": len(content)}

    @app.post("/say")
    async def say(
        request: Request, text: Annotated[str, Body(media_type="text/plain")]
    ) -> PlainTextResponse:
        """Say something."""
        return PlainTextResponse(f"{request.headers['content-type']}: {text}")

    _guarded(app)
    _odd(app)
    _endless(app)
    return app


def _guarded(app: FastAPI) -> None:
    """Add operations that require credentials and repeat them in their answer."""

    @app.get("/guarded/bearer")
    def by_bearer(found: Annotated[HTTPAuthorizationCredentials, Depends(_BEARER)]) -> str:
        return _known(found.credentials)

    @app.get("/guarded/oauth")
    def by_oauth(found: Annotated[str, Depends(_OAUTH)]) -> str:
        return _known(found)

    @app.get("/guarded/basic")
    def by_basic(found: Annotated[HTTPBasicCredentials, Depends(_BASIC)]) -> str:
        return f"{found.username} {_known(found.password)}"

    @app.get("/guarded/header")
    def by_header(found: Annotated[str, Depends(_HEADER)]) -> str:
        return _known(found)

    @app.get("/guarded/query")
    def by_query(found: Annotated[str, Depends(_QUERY)]) -> str:
        return _known(found)

    @app.get("/guarded/cookie")
    def by_cookie(found: Annotated[str, Depends(_COOKIE)]) -> str:
        return _known(found)


def _known(secret: str) -> str:
    if secret != SECRET:
        raise HTTPException(403, f"Not with {secret}.")
    return f"let in with {secret}"


def _odd(app: FastAPI) -> None:
    """Add operations that fail, redirect, or give unusual answers."""

    @app.get("/broken")
    def broken() -> Response:
        return PlainTextResponse(f"no luck with {SECRET}", 503)

    @app.get("/moved")
    def moved(to: str) -> RedirectResponse:
        return RedirectResponse(to, 302)

    @app.post("/away")
    def send_away(to: str) -> RedirectResponse:
        return RedirectResponse(to, 307)

    @app.get("/busy")
    def busy(charset: str, text: str = "trop tôt") -> Response:
        headers = {"Content-Type": f"text/plain; charset={charset}", "Retry-After": SECRET}
        return Response(text.encode(), 429, headers)

    @app.get("/picture")
    def picture() -> Response:
        return Response(b"\x89PNG\0", media_type="image/png")


def _endless(app: FastAPI) -> None:
    """Add operations that give slow, huge or compressed answers."""

    @app.get("/slow")
    async def slow() -> StreamingResponse:
        async def drip() -> Any:  # noqa: ANN401 - an asynchronous generator
            while True:
                yield b" "
                await asyncio.sleep(0.05)

        return StreamingResponse(drip())

    @app.get("/huge")
    def huge() -> StreamingResponse:
        return StreamingResponse((b"x" * 2**20 for _ in range(100)), media_type="text/plain")

    @app.get("/packed")
    def packed() -> Response:
        return Response(gzip.compress(b"text"), headers={"Content-Encoding": "gzip"})

    @app.get("/wordy")
    def wordy() -> Response:
        return PlainTextResponse("x" * 30_000, 400)


@contextmanager
def listening(app: ASGIApp) -> Iterator[str]:
    """Serve an application on a local port; yields the URL."""
    config = uvicorn.Config(
        app, port=0, log_level="critical", lifespan="off", timeout_graceful_shutdown=0
    )
    with config.bind_socket() as listener:
        listener.listen()  # so that no client is refused before the server starts
        with on_thread(config, listener) as url:
            yield url
