"""Calls of a real web API, made from its own OpenAPI document."""

import json
import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from repertory.calling.calls import Calls
from repertory.calling.http.client import (
    MAX_CONCURRENT_CALLS,
    MAX_REDIRECTS,
    MAX_TEXT_LENGTH,
    Requests,
)
from repertory.calling.result import CallResult
from repertory.catalogue.item import Item
from repertory.errors import (
    ArgumentsError,
    CallError,
    CallsOffError,
    CallTimeoutError,
    RepertoryError,
    SourceError,
    UsageError,
)
from repertory.project.workspace import Workspace
from repertory.settings import load
from repertory.sources.openapi.api import Api
from repertory.sources.openapi.operation import Operation, operation_of
from repertory.sources.registry import build
from repertory.sources.source import Source
from repertory.system.cancellation import waiting
from tests.support.builders import write
from tests.support.waiting import until
from tests.support.web_api import SECRET, listening, pets

AUTH = dict.fromkeys(("bearer", "oauth", "headerKey", "queryKey", "cookieKey"), "${PETS_TOKEN}")
AUTH["basic"] = "alice:${PETS_TOKEN}"


class Shop:
    """The web API of a pet shop, and calls of its operations."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        entry = {
            "type": "openapi",
            "name": "pets",
            "url": f"{url}/openapi.json",
            "store": str(folder / "store"),
            "auth": AUTH,
        }
        [self.source] = build(entry, folder)
        self.source.refresh()
        self.items = {item.name: item for item in self.source.scan().items}
        self.requests = Requests()

    def item(self, start: str) -> Item:
        """The only operation whose name has this prefix."""
        [name] = [name for name in self.items if name.startswith(start)]
        return self.items[name]

    @property
    def api(self) -> Api:
        """The origin and the credentials of the API."""
        found = self.source.to_call("removePet")
        assert isinstance(found, Api)
        return found

    def call(
        self,
        start: str,
        seconds: float = 30,
        api: Api | None = None,
        **arguments: object,
    ) -> CallResult:
        """Call the operation whose name has this prefix."""
        operation = operation_of(self.item(start).extra)
        assert operation is not None
        return self.requests.call(api or self.api, operation, arguments, seconds, os.environ)

    def failure(self, start: str, **arguments: object) -> str:
        """The error message of a call that fails."""
        with pytest.raises(CallError) as caught:
            self.call(start, **arguments)  # type: ignore[arg-type]  # of the operation
        assert SECRET not in str(caught.value)
        return str(caught.value)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The URL of the web API."""
    with listening(pets()) as url:
        yield url


@pytest.fixture
def shop(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The web API, with its secret in the environment."""
    monkeypatch.setenv("PETS_TOKEN", SECRET)
    return Shop(address, tmp_path)


def test_every_operation_is_a_tool(shop: Shop) -> None:
    """The document has no problems, and the tags follow from the methods."""
    assert shop.source.scan().problems == []
    assert shop.item("get_pet").tags == ("read-only", "shop")
    assert shop.item("removePet").tags == ("destructive",)
    assert shop.item("add_pet").tags == ("shop",)


def test_a_local_api_is_not_called_through_a_proxy(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the document nor a call goes through the proxy, even if no_proxy is not set."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nothing answers there
    monkeypatch.setenv("PETS_TOKEN", SECRET)
    shop = Shop(address, tmp_path)
    assert shop.call("say", body="hello").content[0]["text"] == "text/plain: hello"


def test_json_is_sent_and_returned(shop: Shop) -> None:
    """Arguments form the body, and the result has text and structured content."""
    added = shop.call("add_pet", name="Rex", tags=["big"], home={"town": "Bern"})
    assert added.structured_content["home"] == {"town": "Bern", "street": None}
    assert json.loads(added.content[0]["text"]) == added.structured_content
    number = added.structured_content["id"]
    assert shop.call("get_pet", pet_id=number).structured_content["name"] == "Rex"
    assert shop.call("removePet", pet_id=number) == CallResult(
        content=[{"type": "text", "text": "No Content"}]
    )


def test_parameters_arrive_in_their_places(shop: Shop) -> None:
    """Path, query, header and cookie values with special characters arrive correctly encoded."""
    given = {"kind": "a b?&#é%2F", "tag": ["x&y", "z=1"], "x-trace": "t1", "theme": "dark;blue é"}
    found = shop.call("find", **given).structured_content  # type: ignore[arg-type]  # as above
    assert (found["kind"], found["tag"]) == (given["kind"], given["tag"])
    assert found["trace"] == "t1"
    assert found["theme"] == "dark%3Bblue%20%C3%A9"  # the API does not decode a cookie


def test_forms_files_and_texts_can_be_sent(shop: Shop) -> None:
    """The API receives each kind of body as described."""
    assert shop.call("sign", name="A & B", age=3).structured_content == {"name": "A & B", "age": 3}
    sent = shop.call("upload", photo="data:image/png;base64,AAEC", title='T"x')
    assert sent.structured_content == {"title": 'T"x', "type": "image/png", "size": 3}
    assert shop.call("say", body="hällo").content[0]["text"] == "text/plain: hällo"


@pytest.mark.parametrize("way", ["bearer", "oauth", "basic", "header", "query", "cookie"])
def test_every_way_to_authenticate_works(shop: Shop, way: str) -> None:
    """The secret reaches the API, and a result that repeats it is masked."""
    found = shop.call(f"by_{way}")
    assert not found.is_error
    assert found.structured_content.endswith("let in with ***")
    assert SECRET not in json.dumps(found.as_json())


def test_a_wrong_secret_is_a_failed_call(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result contains the API's error, without the secret."""
    monkeypatch.setenv("PETS_TOKEN", "an-0ther-t0ken")
    found = shop.call("by_query")
    assert found.is_error
    assert "HTTP status 403" in found.words
    assert "Not with ***." in found.words


def test_a_missing_secret_sends_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the missing variable, or the scheme that is not configured."""
    monkeypatch.delenv("PETS_TOKEN")
    assert "PETS_TOKEN, which is not set" in shop.failure("by_header")
    with pytest.raises(CallsOffError, match=r"headerKey.*auth"):
        shop.call("by_header", api=msgspec.structs.replace(shop.api, auth={}))


def test_a_secret_cannot_inject_a_header(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable with line breaks is refused."""
    monkeypatch.setenv("PETS_TOKEN", "one\r\nX-Admin: yes")
    assert "has characters that cannot be sent" in shop.failure("by_header")


def test_a_configured_header_can_replace_a_scheme(shop: Shop) -> None:
    """Some documents declare fewer schemes than the API needs."""
    headers = {"authorization": "Bearer ${PETS_TOKEN}"}
    api = msgspec.structs.replace(shop.api, auth={}, headers=headers)
    assert shop.call("by_bearer", api=api).structured_content == "let in with ***"


def test_statuses_become_results_or_errors(shop: Shop) -> None:
    """4xx is a failed result of the tool; 5xx is an error."""
    missing = shop.call("get_pet", pet_id=99)
    assert missing.is_error
    assert missing.words.startswith("HTTP status 404 Not Found")
    assert "There is no pet 99." in missing.words
    assert shop.failure("broken") == (
        "The API pets answered with HTTP status 503: no luck with ***."
    )


@pytest.mark.parametrize("text", ["trop tôt", "too-early"])
@pytest.mark.parametrize("charset", ["utf-8", "none", "idna", "undefined", "punycode"])
def test_an_unusable_charset_is_read_as_utf_8(shop: Shop, charset: str, text: str) -> None:
    """Some of the codecs of Python raise their own errors; one takes quadratic time."""
    found = shop.call("busy", charset=charset, text=text).words
    assert found == f"HTTP status 429 Too Many Requests: call again after ***\n{text}"


def test_responses_are_bounded(shop: Shop) -> None:
    """Slow responses time out while bytes arrive; large and compressed ones are refused."""
    with pytest.raises(CallTimeoutError, match=r"within 0\.5 s"):
        shop.call("slow", seconds=0.5)
    assert "sent more than 8 MB" in shop.failure("huge")
    assert "compressed its answer" in shop.failure("packed")
    assert len(shop.call("wordy").content[0]["text"]) < 1.01 * MAX_TEXT_LENGTH


def test_concurrent_calls_of_an_api_are_limited(shop: Shop) -> None:
    """One call more is an error."""
    vars(shop.requests)["_pending_calls"]["pets"] = MAX_CONCURRENT_CALLS
    assert "is already answering" in shop.failure("picture")


def test_an_abandoned_call_is_cancelled(shop: Shop) -> None:
    """This works across threads, and later calls of the API are answered."""
    with ThreadPoolExecutor(1) as threads:
        with waiting():
            call = threads.submit(copy_context().run, shop.call, "slow")
            until(lambda: vars(shop.requests)["_pending_calls"]["pets"])
        with pytest.raises(UsageError, match="The call of the API pets was cancelled by its"):
            call.result()
    with waiting():
        shop.call("picture")


def test_an_image_is_returned_as_an_mcp_image(shop: Shop) -> None:
    """The content block has the data and the media type."""
    [block] = shop.call("picture").content
    assert block == {"type": "image", "data": "iVBORwA=", "mimeType": "image/png"}


def test_only_redirects_within_the_origin_are_followed(shop: Shop) -> None:
    """The error for another redirect shows its origin, but no secret."""
    assert "There is no pet 7." in shop.call("moved", to="/pets/7").words
    elsewhere = f"http://localhost:1/steal?key={SECRET}"
    assert "a redirect to http://localhost:1, which was not followed" in shop.failure(
        "moved", to=elsewhere
    )


def test_the_number_of_redirects_is_limited(shop: Shop) -> None:
    """Five are followed."""
    to = "/pets/7"
    for _ in range(MAX_REDIRECTS - 1):
        to = f"/moved?to={quote(to, safe='')}"
    assert "There is no pet 7." in shop.call("moved", to=to).words
    longer = f"/moved?to={quote(to, safe='')}"
    assert "redirects more than 5 times" in shop.failure("moved", to=longer)


def test_a_request_that_may_change_something_follows_no_redirect(shop: Shop) -> None:
    """The server that redirects may have acted on it already."""
    assert "HTTP status 307, a redirect to" in shop.failure("send_away", to="/say")


def test_an_unreachable_api_is_an_error(shop: Shop) -> None:
    """The error names the API."""
    api = Api(name="pets", origin="http://127.0.0.1:1")
    operation = Operation(method="GET", url="http://127.0.0.1:1/")
    with pytest.raises(CallError, match="The API pets could not be called"):
        shop.requests.call(api, operation, {}, 30, os.environ)


def test_an_invalid_international_host_is_an_error_of_the_call(shop: Shop) -> None:
    """Such a host may be in an untrusted document."""
    api = msgspec.structs.replace(shop.api, name="pets", origin="http://xn--a.example")
    operation = Operation(method="GET", url="http://xn--a.example/")
    with pytest.raises(CallError, match="The API pets could not be called"):
        shop.requests.call(api, operation, {}, 30, os.environ)


def test_an_error_of_the_connection_shows_no_secret(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library may quote the URL, in which the secret is."""

    async def fail(*_: object) -> None:
        raise httpx.ConnectError(f"no route for /?key={SECRET}")

    monkeypatch.setattr("repertory.calling.http.client._fetch", fail)
    assert "no route for /?key=***" in shop.failure("by_query")


def test_calls_are_validated_counted_and_logged(
    shop: Shop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Arguments are checked against the schema, and the log has no secret."""
    project = tmp_path / "project"
    file = write(project / "api.json", json.dumps(pets().openapi()))
    configuration = write(
        project / "repertory.toml",
        f"""
[[sources]]
type = "openapi"
name = "pets"
path = "{file}"
server = "{shop.url}"
auth = {{bearer = "${{PETS_TOKEN}}"}}
""",
    )
    environment = {"REPERTORY_DATA_DIR": str(tmp_path / "data"), "PETS_TOKEN": SECRET}
    settings = load({"config": configuration}, project, environment)
    workspace = Workspace(settings, project)
    [source] = [one for one in workspace.catalogue().sources if one.type == "openapi"]
    items = {item.name: item for item in source.scan().items}
    calls = Calls(settings.values, workspace)
    caplog.set_level(logging.INFO)

    def call(start: str, **arguments: object) -> CallResult:
        [name] = [name for name in items if name.startswith(start)]
        return calls.call(items[name], arguments)

    assert call("by_bearer").structured_content == "let in with ***"
    with pytest.raises(ArgumentsError, match="pet_id must be integer"):
        call("get_pet", pet_id="one")
    with pytest.raises(ArgumentsError, match="other is not in the schema"):
        call("get_pet", pet_id=1, other=2)
    with pytest.raises(CallsOffError, match="headerKey"):
        call("by_header")
    assert call("get_pet", pet_id=99).is_error
    assert dict(calls.outcomes) == {"ok": 1, "caller": 3, "tool": 1}
    assert "tool_called" in caplog.messages
    assert SECRET not in caplog.text + str([record.__dict__ for record in caplog.records])
    calls.close()


class Published:
    """A server whose document changes or fails, and which records the statuses of its answers."""

    def __init__(self) -> None:
        self.names = ["a"]
        self.status = 200
        self.answers: list[int] = []

    def app(self) -> Starlette:
        """The application."""
        return Starlette(routes=[Route("/openapi.json", self._answer), Route("/old", self._moved)])

    def _answer(self, request: Request) -> Response:
        tag = f'"{"-".join(self.names)}"'
        status = 304 if request.headers.get("if-none-match") == tag else self.status
        self.answers.append(status)
        paths: dict[str, Any] = {f"/{name}": {"get": {}} for name in self.names}
        content = {"openapi": "3.1.0", "info": {"title": "x", "version": "1"}, "paths": paths}
        if status != 200:
            return Response(status_code=status)
        return JSONResponse(content, headers={"ETag": tag})

    def _moved(self, _: Request) -> Response:
        return RedirectResponse("/openapi.json")


def names(source: Source) -> list[str]:
    """The names of the items of a source."""
    return [item.name for item in source.scan().items]


def test_a_document_is_fetched_again_only_if_it_changed(tmp_path: Path) -> None:
    """After a failure, and in another process, the last document is used."""
    published = Published()
    with listening(published.app()) as url:
        entry = {
            "type": "openapi",
            "name": "x",
            "url": f"{url}/openapi.json",
            "store": str(tmp_path / "store"),
        }
        [source] = build(entry, tmp_path)
        with pytest.raises(SourceError, match="not fetched yet"):
            source.scan()
        source.refresh()
        assert names(source) == ["get_a"]
        first = source.scan().items[0]
        source.refresh()
        assert source.scan().items[0] is first
        published.names.append("b")
        source.refresh()
        assert names(source) == ["get_a", "get_b"]
        assert published.answers == [200, 304, 200]
        published.names, published.status = ["c"], 500
        with pytest.raises(SourceError, match="500"):
            source.refresh()
        assert names(source) == ["get_a", "get_b"]
        assert "500" in source.scan().stale
    with pytest.raises(SourceError):
        source.refresh()
    [again] = build(entry, tmp_path)  # another process, offline
    assert names(again) == ["get_a", "get_b"]
    api: Any = again.to_call("get_a")
    assert api.origin == url


def test_an_invalid_document_does_not_replace_a_valid_one(tmp_path: Path) -> None:
    """An example is the HTML page of a proxy with status 200."""
    pages = iter(['{"openapi": "3.1.0", "paths": {"/a": {"get": {}}}}', "<html>Log in</html>"])
    app = Starlette(routes=[Route("/o.json", lambda _: Response(next(pages)))])
    with listening(app) as url:
        entry = {
            "type": "openapi",
            "name": "x",
            "url": f"{url}/o.json",
            "store": str(tmp_path / "store"),
        }
        [source] = build(entry, tmp_path)
        source.refresh()
        with pytest.raises(RepertoryError):
            source.refresh()
        assert names(source) == ["get_a"]
