"""OAuth sign-ins to MCP servers, with a real authorization server on this machine."""

import json
import logging
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import httpx2
import msgspec
import pytest
from mcp.shared.auth import OAuthMetadata

from repertory.calling.sessions import Sessions
from repertory.errors import CallError, SignInError, SourceError, UsageError
from repertory.sources.mcp import oauth
from repertory.sources.mcp.redirects import Redirects
from repertory.sources.mcp.server import OAuthClient, ServerConfig, Transport
from repertory.sources.mcp.sign_ins import SignIns
from repertory.sources.mcp.signing_in import other_receiver, sign_in
from repertory.sources.mcp.source import McpServer
from tests.support.at_once import answers_at_once
from tests.support.mcp_servers import started
from tests.support.waiting import until

WAITING = "The MCP server web is waiting for sign-in; run `repertory login web`."
USUAL = {
    "lifetime": 3600,
    "state": "",
    "error": "",
    "iss": "",
    "issuer": "",
    "metadata": {},
    "token_status": 0,
    "token_error": "",
    "slow": 0.0,
    "lockout": False,
    "registrations": 0,
    "renewals": 0,
    "refused_renewals": 0,
    "authorizations": [],
    "resources": [],
    "challenges": 0,
}


class Guarded:
    """An MCP server with OAuth, which the test controls."""

    def __init__(self, url: str, data: Path) -> None:
        self.url = url
        self.sign_ins = SignIns(data)
        self.config = ServerConfig(
            name="web", transport=Transport.HTTP, url=url, sign_ins=str(data), timeout=20
        )
        self.control(revoke="all", **USUAL)

    def control(self, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Change the behaviour of the servers, and return what they have seen."""
        target = self.url.rpartition("/")[0] + "/test"
        request = Request(target, json.dumps(changes).encode())
        with urlopen(request) as response:
            seen: dict[str, Any] = json.load(response)
        return seen

    @property
    def seen(self) -> dict[str, Any]:
        """The requests that the servers have seen."""
        return self.control()

    def sign_in(self, **more: float) -> None:
        """Sign in with a browser that follows the redirect at once."""
        sign_in(self.config, follow, **more)

    def tools(self) -> list[str]:
        """The names of the tools in a scan."""
        return [item.name for item in McpServer(self.config, trusted=True).scan().items]

    def expire(self) -> None:
        """Expire the access token at the server."""
        self.control(revoke="access")

    def stored(self) -> dict[str, Any]:
        """The stored sign-in."""
        content: dict[str, Any] = json.loads(self.sign_ins.path(self.url).read_bytes())
        return content


def follow(address: str, _: Redirects, receiver: str = "") -> None:
    """Act as a browser: open an address and follow its redirects."""
    assert not receiver

    def browse() -> None:
        try:
            urlopen(address).read()
        except HTTPError as error:
            error.read()

    threading.Thread(target=browse, daemon=True).start()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The URL of a server whose issuer registers clients."""
    with started("oauth.py", "registers") as url:
        yield url


def test_a_server_over_sse(tmp_path: Path) -> None:
    """The configuration may name SSE or HTTP."""
    with started("oauth.py", "sse") as url:
        for transport in (Transport.SSE, Transport.HTTP):
            guarded = Guarded(url, tmp_path / transport)
            guarded.config = msgspec.structs.replace(guarded.config, transport=transport)
            with pytest.raises(SignInError, match=WAITING):
                guarded.tools()
            guarded.sign_in()
            assert guarded.tools() == ["unlock"]


@pytest.fixture
def guarded(address: str, tmp_path: Path) -> Guarded:
    """The server, at which no client is signed in."""
    return Guarded(address, tmp_path / "sign-ins")


def failure(guarded: Guarded, **more: float) -> str:
    """Sign in without success, check that nothing is stored, and return the message."""
    with pytest.raises(SourceError) as caught:
        guarded.sign_in(**more)
    assert not guarded.sign_ins.path(guarded.url).exists()
    return str(caught.value)


def test_a_server_waits_for_a_sign_in(guarded: Guarded) -> None:
    """Without tokens, a scan says what to do, and asks no authorization server."""
    with pytest.raises(SignInError, match=WAITING):
        guarded.tools()
    seen = guarded.seen
    assert (seen["registrations"], seen["challenges"]) == (0, 0)
    assert seen["authorizations"] == [""]


def test_first_sign_in(guarded: Guarded) -> None:
    """It uses discovery, registration and PKCE; only the owner can read the stored tokens."""
    guarded.sign_in()
    assert guarded.tools() == ["unlock"]
    seen, file = guarded.seen, guarded.sign_ins.path(guarded.url)
    assert (seen["registrations"], seen["challenges"], seen["renewals"]) == (1, 1, 0)
    assert len(seen["resources"]) == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert guarded.stored()["issuer"] == guarded.url.removesuffix("/mcp")


def test_a_token_that_the_server_rejects_is_renewed(guarded: Guarded) -> None:
    """It is renewed once, and the new refresh token replaces the used one."""
    guarded.sign_in()
    old = guarded.stored()["tokens"]
    guarded.expire()
    assert guarded.tools() == ["unlock"]
    new, seen = guarded.stored()["tokens"], guarded.seen
    assert (seen["renewals"], seen["refused_renewals"]) == (1, 0)
    assert len(seen["resources"]) == 2
    assert not {old["access_token"], old["refresh_token"]} & {*map(str, new.values())}


def test_an_expired_token_is_renewed_before_it_is_sent(guarded: Guarded) -> None:
    """The expiry is stored, so the old token is not sent again."""
    guarded.control(lifetime=0)
    guarded.sign_in()
    old = guarded.stored()["tokens"]["access_token"]
    guarded.control(lifetime=3600)
    assert guarded.tools() == ["unlock"]
    seen = guarded.seen
    assert seen["renewals"] == 1
    assert f"Bearer {old}" not in seen["authorizations"]


def test_a_revoked_sign_in_waits_for_another(guarded: Guarded) -> None:
    """The issuer is asked once, and the revoked tokens are deleted."""
    guarded.sign_in()
    guarded.control(revoke="all")
    for _ in range(2):
        with pytest.raises(SignInError, match=WAITING):
            guarded.tools()
    assert guarded.seen["refused_renewals"] == 1
    assert "tokens" not in guarded.stored() or guarded.stored()["tokens"] is None
    guarded.sign_in()
    assert guarded.tools() == ["unlock"]


def test_a_sign_in_that_cannot_be_renewed_ends(guarded: Guarded) -> None:
    """Some issuers give no refresh token; then the user must sign in again."""
    guarded.sign_in()
    stored = guarded.stored()
    del stored["tokens"]["refresh_token"]
    guarded.sign_ins.path(guarded.url).write_text(json.dumps(stored))
    assert guarded.tools() == ["unlock"]
    guarded.expire()
    with pytest.raises(SignInError, match=WAITING):
        guarded.tools()


def test_a_failing_issuer_does_not_end_a_sign_in(guarded: Guarded) -> None:
    """The tokens stay until the issuer answers again."""
    guarded.sign_in()
    guarded.control(revoke="access", token_status=503)
    with pytest.raises(SourceError, match="sign-in cannot be renewed: HTTP status 503") as caught:
        guarded.tools()
    assert not isinstance(caught.value, SignInError)
    guarded.control(token_status=0)
    assert guarded.tools() == ["unlock"]


def test_a_client_that_the_issuer_does_not_know_keeps_its_tokens(guarded: Guarded) -> None:
    """Only a refused token is deleted; the client's secret may be missing in this process."""
    guarded.sign_in()
    guarded.control(revoke="access", token_status=401, token_error="invalid_client")
    with pytest.raises(SourceError, match=r"HTTP status 401 \(invalid_client\)") as caught:
        guarded.tools()
    assert not isinstance(caught.value, SignInError)
    guarded.control(token_status=0)
    assert guarded.tools() == ["unlock"]


_SCAN = """
import json, sys
from repertory.sources.mcp.source import McpServer
from repertory.sources.mcp.server import ServerConfig, Transport
url, folder = sys.argv[1:]
server = ServerConfig(name="web", transport=Transport.HTTP, url=url, sign_ins=folder, timeout=60)
import repertory.sources.mcp.client
print("ready", flush=True)
sys.stdin.readline()
print([item.name for item in McpServer(server, trusted=True).scan().items])
"""


def test_only_one_of_two_processes_renews_a_token(guarded: Guarded) -> None:
    """The issuer would refuse a refresh token that is used twice."""
    guarded.sign_in()
    guarded.control(revoke="access", slow=1.0)
    command = [sys.executable, "-c", _SCAN, guarded.url, str(guarded.sign_ins.path("").parent)]
    assert answers_at_once([command] * 2) == ["['unlock']\n"] * 2
    seen = guarded.seen
    assert (seen["renewals"], seen["refused_renewals"]) == (1, 0)


def test_a_renewal_is_kept_although_its_scan_has_timed_out(guarded: Guarded) -> None:
    """The issuer accepts the old refresh token only once."""
    guarded.sign_in()
    guarded.control(revoke="access", slow=2.5)
    patient = guarded.config
    guarded.config = msgspec.structs.replace(patient, timeout=1.5)
    with pytest.raises(SourceError):
        guarded.tools()
    guarded.config = patient
    assert guarded.tools() == ["unlock"]
    seen = guarded.seen
    assert (seen["renewals"], seen["refused_renewals"]) == (1, 0)


def test_a_slow_issuer_times_out(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says so, and does not ask for a sign-in."""
    monkeypatch.setattr(oauth, "RENEWAL_TIMEOUT_S", 0.2)
    guarded.sign_in()
    guarded.control(revoke="access", slow=1.0)
    with pytest.raises(SourceError, match="cannot be renewed: the issuer is too slow") as caught:
        guarded.tools()
    assert not isinstance(caught.value, SignInError)


def test_a_token_is_sent_only_to_its_server(guarded: Guarded) -> None:
    """Another URL gets no token, even on the same host and with the same server name."""
    guarded.sign_in()
    guarded.control(authorizations=[])
    token = guarded.stored()["tokens"]["access_token"]
    other = Guarded(f"{guarded.url}?tenant=2", guarded.sign_ins.path("").parent)
    with pytest.raises(SignInError):
        other.tools()
    assert token not in str(other.seen["authorizations"])
    copy = guarded.sign_ins.path(other.url)  # a copy of the file does not help either
    copy.write_bytes(guarded.sign_ins.path(guarded.url).read_bytes())
    assert guarded.sign_ins.read(other.url) is None


def test_a_redirect_with_another_state_is_ignored(guarded: Guarded) -> None:
    """Any web page can send such a redirect; the sign-in keeps waiting for its own."""
    guarded.control(state="forged")
    message = failure(guarded, timeout=1)
    assert message == ("Not signed in at the MCP server web: there was no sign-in within 1 s.")


def test_an_error_of_the_redirect_is_reported(guarded: Guarded) -> None:
    """The message is one line that includes the error of the issuer."""
    guarded.control(error="access_denied")
    assert failure(guarded) == (
        "Not signed in at the MCP server web: the authorization server refused: access_denied."
    )


def test_an_issuer_of_another_name_is_refused(guarded: Guarded) -> None:
    """The name is in its metadata (RFC 8414) or in the redirect (RFC 9207)."""
    guarded.control(issuer="https://elsewhere.example")
    assert "issuer mismatch: https://elsewhere.example !=" in failure(guarded)
    guarded.control(issuer="", iss="https://elsewhere.example")
    assert "iss mismatch: https://elsewhere.example" in failure(guarded)
    assert guarded.seen["resources"] == []  # no code was exchanged


def test_metadata_without_pkce_is_refused(guarded: Guarded) -> None:
    """The error comes before the user is asked to sign in."""
    guarded.control(issuer=guarded.url.removesuffix("/mcp"))  # without PKCE
    assert "PKCE" in failure(guarded)


def test_a_server_without_registration(tmp_path: Path) -> None:
    """The configuration must name a client, whose secret is not stored."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with started("oauth.py", "closed", str(port)) as url:
        guarded = Guarded(url, tmp_path / "sign-ins")
        message = failure(guarded)
        assert "does not register clients itself" in message
        assert '"oauth": {"clientId"' in message
        guarded.config = ServerConfig(
            name="web",
            transport=Transport.HTTP,
            url=url,
            sign_ins=guarded.config.sign_ins,
            oauth=OAuthClient(client_id="by-hand", client_secret="${SECRET}", callback_port=port),
            environment={"SECRET": "by-hand-secret"},
        )
        guarded.sign_in()
        assert "by-hand-secret" not in guarded.sign_ins.path(url).read_text()
        guarded.expire()
        assert guarded.tools() == ["unlock"]

        # The secret is only for the issuer of the first sign-in, even if the server names another.
        file, seen = guarded.sign_ins.path(url), guarded.seen["challenges"]
        file.write_text(json.dumps(guarded.stored() | {"issuer": "https://former.example"}))
        with pytest.raises(SourceError, match=r"one of https://former\.example; if that is right"):
            guarded.sign_in()
        assert guarded.seen["challenges"] == seen
        assert guarded.sign_ins.forget("web", url)
        guarded.sign_in()


def test_a_sign_in_page_on_another_host_is_announced(guarded: Guarded) -> None:
    """The user learns who gets access before the page is opened."""
    issuer = guarded.url.removesuffix("/mcp")
    asked: list[tuple[str, str]] = []

    def refuse(address: str, _: Redirects, receiver: str) -> None:
        asked.append((address.partition("?")[0], receiver))
        raise UsageError("Nothing was signed in.")

    page = issuer.replace("127.0.0.1", "localhost") + "/authorize"
    more = {
        "authorization_endpoint": page,
        "registration_endpoint": f"{issuer}/register",
        "code_challenge_methods_supported": ["S256"],
    }
    guarded.control(issuer=issuer, metadata=more)
    with pytest.raises(UsageError, match="Nothing was signed in"):
        sign_in(guarded.config, refuse)
    assert asked == [(page, "127.0.0.1")]
    assert guarded.seen["resources"] == []


@pytest.mark.parametrize(
    ("page", "token", "expected"),
    [
        ("https://honest.example/authorize", "https://evil.example/token", "evil.example"),
        ("https://honest.example/authorize", "https://honest.example/token", ""),
        ("https://login.evil.example/authorize", "https://other.example/token", ""),
        ("https://issuer.example/authorize", "https://api.issuer.example/token", ""),
    ],
)
def test_a_token_endpoint_on_another_host_is_announced(
    page: str, token: str, expected: str
) -> None:
    """It is not needed if the page is on a related host, or if the redirect names the issuer."""
    names = {"authorization_endpoint": page, "token_endpoint": token}
    metadata = OAuthMetadata.model_validate({"issuer": "https://evil.example", **names})
    assert other_receiver(metadata) == expected
    metadata.authorization_response_iss_parameter_supported = True
    assert other_receiver(metadata) == ""


def test_a_user_may_paste_the_address_of_the_redirect(guarded: Guarded) -> None:
    """A browser on another machine cannot load the page of the redirect."""

    def paste(address: str, redirects: Redirects, _: str) -> None:
        location = httpx2.get(address).headers["Location"]
        assert not redirects.accept("http://127.0.0.1/callback?code=x&state=y")
        assert redirects.accept(f"  {location}\n")

    sign_in(guarded.config, paste)
    assert guarded.tools() == ["unlock"]


def test_calls_carry_the_token(guarded: Guarded) -> None:
    """A session renews the token; after a revocation the call asks for a sign-in."""
    guarded.sign_in()
    sessions = Sessions()

    def call() -> dict[str, Any]:
        return sessions.call(guarded.config, "unlock", {"door": "front"}, 20)

    try:
        assert call()["content"][0]["text"] == "front is open"
        guarded.expire()
        assert call()["content"][0]["text"] == "front is open"
        guarded.control(revoke="all")
        with pytest.raises(CallError, match="waiting for sign-in"):
            call()
        guarded.sign_in()
        assert call()["content"][0]["text"] == "front is open"
    finally:
        sessions.close()


def test_a_watched_server_is_not_asked_until_someone_signs_in(guarded: Guarded) -> None:
    """After the sign-in, its tools appear without another action."""
    source = McpServer(guarded.config, trusted=True)
    end = source.watch(lambda: None, 0.1)
    assert end is not None
    try:
        with pytest.raises(SignInError, match=WAITING):
            source.scan()
        asked = len(guarded.seen["authorizations"])
        time.sleep(1.5)  # several times the interval
        assert len(guarded.seen["authorizations"]) == asked
        guarded.sign_in()

        def has_tools() -> bool:
            try:
                return bool(source.scan().items)
            except SignInError:
                return False

        until(has_tools)
    finally:
        end()


def test_a_server_that_rejects_new_tokens_is_not_asked_for_ever(guarded: Guarded) -> None:
    """After one renewal it waits for a sign-in."""
    guarded.sign_in()
    guarded.control(lockout=True, authorizations=[])
    source = McpServer(guarded.config, trusted=True)
    end = source.watch(lambda: None, 0.1)
    assert end is not None
    try:
        with pytest.raises(SignInError, match=WAITING):
            source.scan()
        time.sleep(1.5)
        assert (guarded.seen["renewals"], len(guarded.seen["authorizations"])) == (1, 2)
    finally:
        end()


def test_a_server_without_oauth(tmp_path: Path) -> None:
    """The sign-in fails, because the server names no authorization server."""
    with started("sdk.py", "http") as url:
        config = ServerConfig(name="web", transport=Transport.HTTP, url=url, sign_ins=str(tmp_path))
        with pytest.raises(SourceError, match="names no authorization server"):
            sign_in(config, follow)


def test_nothing_secret_is_logged(guarded: Guarded, caplog: pytest.LogCaptureFixture) -> None:
    """Tokens, codes and client secrets are not logged at any level."""
    caplog.set_level(logging.DEBUG)
    guarded.sign_in()
    guarded.expire()
    guarded.tools()
    held = guarded.stored()
    secrets = [held["tokens"]["access_token"], held["tokens"]["refresh_token"]]
    secrets += [held["client"]["client_secret"], "code=", "state="]
    text = "".join(f"{record.getMessage()}{vars(record)}" for record in caplog.records)
    assert not [secret for secret in secrets if secret in text]
    assert not [
        secret for secret in secrets[:3] if secret in repr(guarded.sign_ins.read(guarded.url))
    ]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://192.0.2.1/mcp", "its sign-in is not encrypted: http://192.0.2.1"),
        ("http://example.com/mcp", "its sign-in is not encrypted: http://example.com"),
    ],
)
def test_tokens_are_sent_encrypted(tmp_path: Path, url: str, reason: str) -> None:
    """Only a server on this machine may use HTTP without TLS."""
    config = ServerConfig(name="web", transport=Transport.HTTP, url=url, sign_ins=str(tmp_path))
    with pytest.raises(SourceError, match=reason):
        sign_in(config, follow)


def test_servers_that_take_no_sign_in(tmp_path: Path) -> None:
    """They are programs, and servers whose configuration has an Authorization header."""
    program = ServerConfig(name="web", command="x", sign_ins=str(tmp_path))
    with pytest.raises(UsageError, match="is a program"):
        sign_in(program, follow)
    own = ServerConfig(
        name="web",
        transport=Transport.HTTP,
        url="http://127.0.0.1:9/mcp",
        headers={"authorization": "Bearer x"},
    )
    with pytest.raises(UsageError, match="Authorization header"):
        sign_in(own, follow)
