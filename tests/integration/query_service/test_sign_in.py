"""Browsers sign in with an OpenID provider, on a real server."""

import base64
import hmac
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.testclient import TestClient

from repertory.keys import Keys, Scope
from repertory_query.app import create_app
from repertory_query.sign_in import provider as provider_module
from tests.support.audits import lines_of
from tests.support.listening import KEY
from tests.support.openid_provider import CLIENT_ID, OpenIdProvider, rsa_key
from tests.support.query_service import RunningService, bearer, settings_of
from tests.support.signing_in import (
    Browser,
    authorized,
    fields,
    sign_in_settings,
    signing_in,
)
from tests.support.waiting import until


def test_a_person_signs_in_and_out(url: str, provider: OpenIdProvider) -> None:
    """The page for keys links to the provider; then the browser returns to its first target."""
    browser = Browser(url)
    asked = browser.get("/status?x=1")
    assert asked.status_code == 401
    assert 'href="/login/openid?target=%2Fstatus%3Fx%3D1"' in asked.text
    assert provider.issuer.removeprefix("http://") in asked.text
    assert "form-action 'self'" in asked.headers["content-security-policy"]

    sent = fields(browser.begin("/status?x=1"))
    assert sent["response_type"] == "code"
    assert sent["code_challenge_method"] == "S256"
    assert sent["redirect_uri"] == f"{url}/login/callback"
    assert min(map(len, (sent["state"], sent["nonce"], sent["code_challenge"]))) >= 43

    back = browser.sign_in("anna", "/status?x=1")
    assert (back.status_code, back.headers["location"]) == (303, "/status?x=1")
    made = back.headers.get_list("set-cookie")
    (session,) = (one for one in made if one.startswith("repertory_session=ey"))
    assert "HttpOnly" in session
    assert "SameSite=lax" in session
    assert any(one.startswith('repertory_sign_in=""') for one in made)
    assert "Signed in as anna" in browser.get("/status").text
    assert browser.has_session()

    assert browser.sign_out().headers["location"] == "/login"
    assert not browser.has_session()


@pytest.mark.parametrize(
    ("name", "rebuild"),
    [("anna", 202), ("ben", 403)],
)
def test_groups_decide_what_a_person_may_do(url: str, name: str, rebuild: int) -> None:
    """Only the groups of anna give the scope admin."""
    browser = Browser(url)
    browser.sign_in(name)
    assert browser.has_session()
    answer = browser.post("/rebuild", headers={"Origin": url, "Accept": "*/*"}, json={})
    assert answer.status_code == rebuild, answer.text


def test_the_audit_log_names_who_signed_in(url: str, server: RunningService) -> None:
    """A refused sign-in is recorded with the address instead of the name."""

    def sign_ins() -> list[dict[str, Any]]:
        return [line for line in lines_of(server.settings) if line["action"] == "sign-in"]

    before = len(sign_ins())
    Browser(url).sign_in("anna")
    until(lambda: len(sign_ins()) == before + 1)  # the line follows the answer
    Browser(url).sign_in("carl")
    until(lambda: len(sign_ins()) == before + 2)
    anna, carl = sign_ins()[-2:]
    assert (anna["caller"], anna["outcome"]) == ("user:anna", "ok")
    assert (carl["caller"], carl["outcome"]) == ("address:127.0.0.1", "refused")


def test_each_project_of_a_server_has_its_own_sessions(url: str, provider: OpenIdProvider) -> None:
    """Each project has its own cookie and redirect URL below its address."""
    root = f"/projects/{KEY}"
    provider.redirect_urls.append(f"{url}{root}/login/callback")
    browser = Browser(url)
    begun = browser.get(f"{root}/login/openid", params={"target": f"{root}/status"})
    back = browser.get(authorized(begun.headers["location"], "anna"))
    assert back.headers["location"] == f"{root}/status"
    assert "Signed in as anna" in browser.get(f"{root}/status").text
    assert not browser.has_session()  # the session does not apply to the server's own project


def test_a_long_target_in_a_project_is_replaced_by_its_home_page(
    url: str, provider: OpenIdProvider
) -> None:
    """The browser does not return to another project."""
    root = f"/projects/{KEY}"
    provider.redirect_urls.append(f"{url}{root}/login/callback")
    browser, target = Browser(url), f"{root}/?q={random.Random(1).randbytes(4_000).hex()}"
    begun = browser.get(f"{root}/login/openid", params={"target": target})
    back = browser.get(authorized(begun.headers["location"], "anna"))
    assert back.headers["location"] == f"{root}/"


def test_people_without_a_known_group_are_not_signed_in(
    url: str, server: RunningService, provider: OpenIdProvider
) -> None:
    """They are signed in if everyone may read."""
    browser = Browser(url)
    refused = browser.sign_in("carl")
    assert refused.status_code == 403
    assert "None of your groups" in refused.text
    assert not browser.has_session()
    with signing_in(server, provider, read_groups="*") as open_to_all:
        reader = Browser(open_to_all)
        reader.sign_in("carl")
        assert reader.has_session()


def test_a_session_is_valid_in_other_processes_and_after_a_restart(
    server: RunningService, provider: OpenIdProvider
) -> None:
    """Processes share only their settings; another client secret ends the session."""
    with signing_in(server, provider) as url:
        browser = Browser(url)
        browser.sign_in("ben")
    other = {"public_url": url}
    with signing_in(server, provider, **other) as another:
        browser.base_url = httpx.URL(another)
        assert browser.has_session()
    secret = "another secret of the client"
    with signing_in(server, provider, oidc_client_secret=secret, **other) as stranger:
        browser.base_url = httpx.URL(stranger)
        assert not browser.has_session()


def test_a_sign_in_is_answered_once_and_only_in_its_own_browser(url: str) -> None:
    """A wrong or missing state, a second answer and another browser are refused."""
    browser, other = Browser(url), Browser(url)
    address = authorized(browser.begin(), "anna")
    kept = dict(browser.cookies)
    other.begin()
    for wrong in (address, address.replace("state=", "state=x"), "/login/callback?code=x"):
        refused = other.get(wrong)
        assert refused.status_code == 401
        assert "another browser" in refused.text
        assert not other.has_session()
        other.begin()
    assert browser.get(address).status_code == 303
    again = browser.get(address)
    assert "another browser" in again.text
    thief = Browser(url)
    thief.cookies.update(kept)  # even the cookie does not help: a code is valid once
    assert thief.get(address).status_code == 401
    assert not thief.has_session()


@pytest.mark.parametrize("checks_pkce", [True, False])
def test_a_code_of_another_sign_in_is_refused(
    url: str, provider: OpenIdProvider, *, checks_pkce: bool
) -> None:
    """The provider checks the PKCE challenge; otherwise the nonce in the token gives it away."""
    provider.checks_pkce = checks_pkce
    attacker, victim = Browser(url), Browser(url)
    stolen = fields(authorized(attacker.begin(), "anna"))["code"]
    own = fields(authorized(victim.begin(), "ben"))
    refused = victim.get(f"/login/callback?{urlencode({**own, 'code': stolen})}")
    assert refused.status_code == 401
    assert ("nonce" in refused.text) is not checks_pkce
    assert not victim.has_session()


def _unsigned(token: str) -> str:
    """The same token without a signature."""
    return f"{_encoded(json.dumps({'alg': 'none'}).encode())}.{token.split('.')[1]}."


def _by_public_key(key: RSAKey) -> str:
    """A token whose HMAC key is the public key, which everyone knows."""
    begin = ".".join(
        _encoded(json.dumps(part).encode())
        for part in ({"alg": "HS256", "kid": key.kid}, {"sub": "anna"})
    )
    mac = hmac.digest(key.as_pem(private=False), begin.encode(), "sha256")
    return f"{begin}.{_encoded(mac)}"


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("replaced", "why"),
    [
        ({"aud": "another"}, "aud"),
        ({"aud": None}, "aud"),
        ({"iss": "https://another.example"}, "iss"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": True}, "exp"),
        ({"iat": 1 << 40}, "iat"),
        ({"nbf": 1 << 40}, "nbf"),
        ({"nonce": "another"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"sub": None}, "sub"),
        ({"azp": "another"}, "azp"),
        ({"aud": [CLIENT_ID, "another"], "azp": "another"}, "azp"),
        ({"preferred_username": ["anna"]}, "names no person"),
    ],
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(
    url: str, provider: OpenIdProvider, replaced: dict[str, object], why: str
) -> None:
    """The page gives the reason and lets people try again."""
    provider.replaced = replaced
    browser = Browser(url)
    refused = browser.sign_in("anna")
    assert refused.status_code == 401
    assert why in refused.text
    assert not browser.has_session()


def test_a_token_for_programs_signs_nobody_in(url: str, provider: OpenIdProvider) -> None:
    """This server's URL is an audience of access tokens; an ID token names the client."""
    provider.replaced = {"aud": url}
    browser = Browser(url)
    refused = browser.sign_in("anna")
    assert refused.status_code == 401
    assert "its aud does not match" in refused.text
    assert not browser.has_session()


def test_groups_that_do_not_fit_a_cookie_refuse_the_sign_in(
    url: str, provider: OpenIdProvider
) -> None:
    """A hundred random ids fit; more are an error, because dropped groups would change access."""
    provider.replaced = {"groups": ["team-a", *(str(uuid4()) for _ in range(100))]}
    browser = Browser(url)
    browser.sign_in("anna")
    assert browser.has_session()
    assert len(browser.cookies["repertory_session"]) < 4_000
    for groups in ([str(uuid4()) for _ in range(190)], [f"group-{n}" for n in range(201)]):
        provider.replaced = {"groups": ["team-a", *groups]}
        many = Browser(url)
        refused = many.sign_in("anna")
        assert refused.status_code == 401
        assert "groups" in refused.text
        assert not many.has_session()


def test_a_forged_token_ends_the_sign_in(url: str, provider: OpenIdProvider) -> None:
    """It is unsigned, signed with another key or with the public key as a secret, or changed."""
    other = rsa_key(provider.key.kid)
    forged = jwt.encode({"alg": "RS256", "kid": provider.key.kid}, {"sub": "x"}, other, ["RS256"])
    spoils: list[Callable[[str], object]] = [
        _unsigned,
        lambda _: _by_public_key(provider.key),
        lambda _: forged,
        lambda token: token[:-8] + "AAAAAAAA",
        lambda _: "",
        lambda _: "a.b.c",
        lambda _: 3,
    ]
    for spoil in spoils:
        provider.spoil = spoil
        browser = Browser(url)
        assert browser.sign_in("anna").status_code == 401
        assert not browser.has_session()


@pytest.mark.parametrize(
    "target", ["//attacker.example", "https://attacker.example", r"/\attacker.example", "x", "/\n"]
)
def test_a_sign_in_redirects_only_to_this_server(url: str, target: str) -> None:
    """A target on another server is replaced by the home page."""
    assert Browser(url).sign_in("anna", target).headers["location"] == "/"


def test_a_target_that_does_not_fit_a_cookie_is_dropped(url: str) -> None:
    """The browser then returns to the home page."""
    target = f"/?q={random.Random(1).randbytes(4_000).hex()}"
    assert Browser(url).sign_in("anna", target).headers["location"] == "/"


def test_a_sign_in_replaces_an_existing_session(
    url: str, server: RunningService, provider: OpenIdProvider
) -> None:
    """Session fixation: a planted cookie is neither trusted nor kept."""
    with signing_in(server, provider, oidc_client_id=f"{CLIENT_ID}-2") as strange:
        stranger = Browser(strange)
        stranger.get("/login/openid")
        planted = stranger.cookies["repertory_sign_in"]
    attacker = Browser(url)
    attacker.sign_in("ben")
    victim = Browser(url)
    for value in ("x", planted, "", "ey." * 5_000):
        victim.cookies.set("repertory_session", value, domain="127.0.0.1")
        assert not victim.has_session()
    victim.cookies.set("repertory_session", attacker.cookies["repertory_session"], "127.0.0.1")
    made = victim.sign_in("anna").headers.get_list("set-cookie")
    (session,) = (one for one in made if one.startswith("repertory_session="))
    assert attacker.cookies["repertory_session"] not in session
    fresh = Browser(url)
    fresh.cookies.set("repertory_session", session.partition("=")[2].partition(";")[0])
    assert "Signed in as anna" in fresh.get("/status").text


def test_pages_of_other_sites_cannot_use_a_session(url: str) -> None:
    """A session allows changes and sign-outs only from the server's own pages."""
    browser = Browser(url)
    browser.sign_in("anna")
    for headers in ({"Origin": "https://attacker.example"}, {"Origin": "null"}):
        assert browser.sign_out(**headers).status_code == 403
        assert browser.post("/rebuild", json={}, headers=headers).status_code == 403
    assert browser.post("/rebuild", json={}).status_code == 403  # a cookie, and no origin
    cross = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"}
    for path in ("/items", "/login/openid", "/login/callback?code=x&state=y"):
        assert browser.get(path, headers=cross).status_code == 403
    assert browser.has_session()


def test_with_tls_cookies_are_bound_to_the_host(
    server: RunningService, provider: OpenIdProvider
) -> None:
    """Cookies are Secure, and their prefix __Host- stops other servers of the domain."""
    public = "https://repertory.example.org"
    provider.redirect_urls.append(f"{public}/login/callback")
    flags = sign_in_settings(provider, public_url=public)
    app = create_app(server.service, settings_of(server.project, **flags))
    client = TestClient(app, public, follow_redirects=False)
    begun = client.get("/login/openid")
    assert begun.headers["set-cookie"].startswith("__Host-repertory_sign_in=")
    back = client.get(authorized(begun.headers["location"], "anna"))
    (made,) = (
        one
        for one in back.headers.get_list("set-cookie")
        if one.startswith("__Host-repertory_session=")
    )
    assert "Secure" in made
    assert "Path=/;" in made
    assert "Domain" not in made
    assert client.get("/items").status_code == 200
    out = client.post("/logout", headers={"Origin": public})
    cleared = out.headers.get_list("set-cookie")
    assert any(one.startswith('__Host-repertory_session="";') for one in cleared)
    assert all("Secure" in one for one in cleared if one.startswith("__Host-"))
    assert client.get("/items").status_code == 401


def test_rotated_keys_are_fetched_again(url: str, provider: OpenIdProvider) -> None:
    """No restart is needed, and tokens of the former key are refused."""
    former = provider.token("anna")
    assert Browser(url).sign_in("anna").status_code == 303
    provider.rotate()
    assert Browser(url).sign_in("anna").status_code == 303
    assert httpx.get(f"{url}/items", headers=bearer(former)).status_code == 401
    provider.key = rsa_key(provider.key.kid)  # another key of the same name
    assert Browser(url).sign_in("anna").status_code == 303


def test_documents_of_the_provider_are_cached(url: str, provider: OpenIdProvider) -> None:
    """Neither sign-ins nor tokens with unknown keys cause repeated requests to the provider."""
    Browser(url).sign_in("anna")
    provider.paths.clear()
    Browser(url).sign_in("anna")
    for number in range(20):
        forged = provider.token("anna", {"kid": f"unknown-{number}"})
        assert httpx.get(f"{url}/items", headers=bearer(forged)).status_code == 401
    assert provider.paths.count("/.well-known/openid-configuration") == 0
    assert provider.paths.count("/keys") <= 1


def test_sessions_and_keys_work_during_an_outage_of_the_provider(
    server: RunningService,
    provider: OpenIdProvider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new sign-in is an error that names the reason and offers a key."""
    monkeypatch.setattr(provider_module, "RETRY_INTERVAL_S", 0.0)
    keys = Keys(tmp_path / "keys.json")
    key = keys.create("robot", Scope.READ)
    with signing_in(server, provider, keys=str(keys.path)) as url:
        browser, late = Browser(url), Browser(url)
        browser.sign_in("anna")
        returning = authorized(late.begin(), "ben")
        token = provider.token("ben")
        provider.stop()
        try:
            assert browser.has_session()
            assert httpx.get(f"{url}/items", headers=bearer(key)).status_code == 200
            assert (
                httpx.get(f"{url}/items", headers=bearer(token)).status_code == 200
            )  # the keys of the provider are cached
            away = late.get(returning)
            assert away.status_code == 503
            assert "does not answer" in away.text
            assert 'name="key"' in away.text
            with signing_in(server, provider, keys=str(keys.path)) as fresh:
                begun = Browser(fresh).get("/login/openid")
                assert begun.status_code == 503
                assert "does not answer" in begun.text
                refused = httpx.get(f"{fresh}/items", headers=bearer(token))
                assert refused.status_code == 503
                assert "does not answer" in refused.json()["detail"]
                provider.start()
                assert httpx.get(f"{fresh}/items", headers=bearer(token)).status_code == 200
        finally:
            provider.start()
        assert Browser(url).sign_in("ben").status_code == 303


def test_claims_that_the_token_lacks_are_requested(url: str, provider: OpenIdProvider) -> None:
    """They are accepted only if they are about the same person."""
    provider.is_thin = True
    browser = Browser(url)
    browser.sign_in("anna")
    assert "Signed in as anna" in browser.get("/status").text
    provider.answered = {"sub": "id-ben"}
    refused = Browser(url).sign_in("anna")
    assert refused.status_code == 401
    assert "another person" in refused.text


def test_requested_claims_replace_none_of_the_token(url: str, provider: OpenIdProvider) -> None:
    """The token is signed, and the answer of the userinfo endpoint is not."""
    provider.is_thin = True
    provider.replaced = {"preferred_username": "anna"}
    provider.answered = {"preferred_username": "ben"}
    browser = Browser(url)
    browser.sign_in("anna")
    assert "Signed in as anna" in browser.get("/status").text


def test_answers_of_other_providers_are_refused(url: str) -> None:
    """Mix-up attack: each answer must name the issuer that the sign-in began with."""
    for issuer in ("", "https://another.example"):
        browser = Browser(url)
        answer = fields(authorized(browser.begin(), "anna")) | {"iss": issuer}
        refused = browser.get(f"/login/callback?{urlencode(answer)}")
        assert refused.status_code == 401
        assert "another provider" in refused.text


def test_a_refusal_of_the_provider_is_shown(url: str, provider: OpenIdProvider) -> None:
    """Only its error code is shown: anybody can write the rest of the address."""
    browser = Browser(url)
    refused = browser.get(authorized(browser.begin(), "stranger"))
    assert refused.status_code == 401
    assert "(access_denied)" in refused.text
    assert "repertory_sign_in" not in browser.cookies  # the refused sign-in is over
    state = fields(browser.begin())["state"]
    answer = {"error": "<b>x</b>", "error_description": "call 555", "state": state}
    lured = browser.get(f"/login/callback?{urlencode(answer | {'iss': provider.issuer})}")
    assert "555" not in lured.text
    assert "<b>x" not in lured.text
    assert "&lt;b&gt;" not in lured.text


def _users(caplog: pytest.LogCaptureFixture) -> set[str]:
    """The users that the log names."""
    callers = {getattr(one, "caller", "") for one in caplog.records}
    return {one for one in callers if one.startswith("user:")}


def test_a_name_from_the_provider_is_cleaned(
    url: str, provider: OpenIdProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """A hostile name reaches neither the log nor a page unchanged."""
    evil = 'key:ops\n"><script>\u202e' + "x" * 500
    provider.replaced = {"preferred_username": evil}
    browser = Browser(url)
    browser.sign_in("anna")
    with caplog.at_level("INFO"):
        text = browser.get("/status").text
        (who,) = until(lambda: _users(caplog))  # the log follows the answer
    assert '"><script>' not in text
    assert "\u202e" not in text
    assert who.startswith("user:key_ops_")
    assert len(who) <= 5 + 64
    assert who.isprintable()


def test_an_unverified_address_is_not_accepted_as_a_name(
    server: RunningService, provider: OpenIdProvider
) -> None:
    """Anybody may have given the provider that address."""
    provider.users["anna"] |= {"email": "anna@example.org", "email_verified": True}
    with signing_in(server, provider, oidc_name_claim="email") as url:
        browser = Browser(url)
        browser.sign_in("anna")
        assert "Signed in as anna@example.org" in browser.get("/status").text
        for is_verified in (False, "false"):  # some providers send a text
            provider.users["anna"]["email_verified"] = is_verified
            assert "not verified" in Browser(url).sign_in("anna").text
