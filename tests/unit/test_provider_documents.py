"""The published documents of an OpenID provider are checked and cached for a limited time."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from joserfc.jwk import OctKey

from repertory_query.sign_in import provider as provider_module
from repertory_query.sign_in.failures import ProviderError
from repertory_query.sign_in.provider import DISCOVERY, MAX_KEYS, MAX_SIZE, Provider
from tests.support.http_stub import serving
from tests.support.openid_provider import rsa_key


@contextmanager
def publishing(answers: dict[str, Any]) -> Iterator[str]:
    """A server that answers with JSON, a text, or a status; yields its URL."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        found = answers.get(request.path, 404)
        is_status = isinstance(found, int)
        body = found.encode() if isinstance(found, str) else json.dumps(found).encode()
        request.send_response(found if is_status else 200)
        if is_status:
            request.send_header("Location", "/elsewhere")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    with serving(answer) as url:
        answers[DISCOVERY] = {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "jwks_uri": f"{url}/keys",
            **answers.pop("more", {}),
        }
        yield url


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"issuer": "https://another.example"}, "names the issuer 'https://another.example'"),
        ({"jwks_uri": "http://another.example/keys"}, "not https"),
        ({"token_endpoint": "http://another.example/token"}, "not https"),
        ({"userinfo_endpoint": "file:///etc/passwd"}, "not https"),
        ({"jwks_uri": None}, "not a discovery document"),
        ({"jwks_uri": ["x"]}, "not a discovery document"),
    ],
)
def test_a_discovery_document_is_checked(more: dict[str, object], why: str) -> None:
    """Its issuer must be the provider, and its URLs must use https."""
    with publishing({"more": more}) as url, pytest.raises(ProviderError, match=why):
        asyncio.run(Provider(url).keys())


def test_a_host_with_an_invalid_name_does_not_answer() -> None:
    """It may be the provider's own host, or one that its discovery document names."""
    invalid = "https://xn--a.example"
    with publishing({"more": {"jwks_uri": f"{invalid}/keys"}}) as url:
        for issuer in (invalid, url):
            with pytest.raises(ProviderError, match=r"xn--a\.example does not answer"):
                asyncio.run(Provider(issuer).keys())


def test_the_issuer_must_be_set_as_the_provider_names_it() -> None:
    """Tokens name it in this form, so a slash at the end matters."""
    with publishing({}) as url, pytest.raises(ProviderError, match=r"set oidc\.issuer to exactly"):
        asyncio.run(Provider(f"{url}/").endpoints())


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (404, "with status 404"),
        (302, "with status 302"),  # redirects are not followed, as they could lead anywhere
        ("no JSON", "not a set of keys"),
        ([], "not a set of keys"),
        ({"keys": 7}, "not a set of keys"),
        ({"keys": [{"kty": "RSA", "n": "?", "e": "AQAB"}]}, "not a set of keys"),
        (" " * (MAX_SIZE + 1), "more than 1,048,576 bytes"),
    ],
)
def test_an_invalid_set_of_keys_is_refused(keys: object, why: str) -> None:
    """The error states the reason."""
    with publishing({"/keys": keys}) as url, pytest.raises(ProviderError, match=why):
        asyncio.run(Provider(url).keys())


def test_only_public_signing_keys_are_used() -> None:
    """Symmetric keys, encryption keys and keys of unknown types are ignored."""
    good = rsa_key("good").as_dict(private=False)
    others = [
        OctKey.import_key("0" * 32).as_dict(),
        {**rsa_key("encrypts").as_dict(private=False), "use": "enc"},
        {"kty": "of-tomorrow"},
    ]
    with publishing({"/keys": {"keys": [*others, good]}}) as url:
        assert [key.kid for key in asyncio.run(Provider(url).keys())] == ["good"]


def test_the_number_of_keys_is_bounded() -> None:
    """Each token is checked with each key if it names none."""
    one = rsa_key("one").as_dict(private=False)
    with publishing({"/keys": {"keys": [one] * (MAX_KEYS + 1)}}) as url:
        assert len(asyncio.run(Provider(url).keys())) == MAX_KEYS


def test_known_keys_are_used_while_the_provider_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are used for a day. A failed request is not repeated by each caller."""
    answers: dict[str, Any] = {"/keys": {"keys": [rsa_key("one").as_dict(private=False)]}}
    now = 1e6
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with publishing(answers) as url:
        provider = Provider(url)

        def kids() -> list[str | None]:
            return [key.kid for key in asyncio.run(provider.keys())]

        assert kids() == ["one"]
        answers["/keys"] = 500
        now += provider_module.FRESH_S
        assert kids() == ["one"]
        answers["/keys"] = {"keys": [rsa_key("two").as_dict(private=False)]}
        assert kids() == ["one"]  # a request has just failed, so it is not repeated yet
        now += provider_module.REFRESH_INTERVAL_S
        assert kids() == ["two"]
        answers["/keys"] = 500
        now += provider_module.STALE_S
        with pytest.raises(ProviderError, match="status 500"):
            kids()
        now += provider_module.REFRESH_INTERVAL_S

        async def at_once() -> list[object]:
            asked = (provider.keys() for _ in range(3))
            return await asyncio.gather(*asked, return_exceptions=True)

        assert {type(one) for one in asyncio.run(at_once())} == {ProviderError}


def test_only_one_request_waits_for_a_slow_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others use the known keys, even if these are due for a check."""
    now, fetch, was_released = 1e6, provider_module.fetch, asyncio.Event()
    monkeypatch.setattr(time, "monotonic", lambda: now)

    async def slow(url: str) -> bytes:
        await was_released.wait()
        return await fetch(url)

    async def at_once(provider: Provider) -> None:
        nonlocal now
        known = await provider.keys()
        now += provider_module.FRESH_S
        monkeypatch.setattr(provider_module, "fetch", slow)
        first, second = (asyncio.create_task(provider.keys()) for _ in range(2))
        for _ in range(10):
            await asyncio.sleep(0)
        assert (first.done(), second.done()) == (False, True)
        was_released.set()
        assert [*await first] == [*await second] == [*known]

    with publishing({"/keys": {"keys": [rsa_key("one").as_dict(private=False)]}}) as url:
        asyncio.run(at_once(Provider(url)))
