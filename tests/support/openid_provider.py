"""A local OpenID provider, built from Authlib's provider classes and served by Flask."""
# ruff: noqa: ANN401, ARG001, ARG002, ARG005 - Authlib defines the methods and their arguments

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import flask
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9207 import IssuerParameter
from authlib.oidc.core.grants import OpenIDCode
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from tests.support.ports import free_port
from tests.support.waiting import until

CLIENT_ID = "repertory-of-team"
HOST_ID = "a-program"
CLIENT_SECRET = "a secret of the team's client"
LIFETIME_S = 600

_FORM = """<link rel="icon" href="data:,">
<form method="post"><input name="name"><button>Sign in</button></form>
"""


class OpenIdProvider:
    """A provider that signs in any known user by name, without a password.

    Attributes:
        issuer: The provider's URL.
        users: The claims of all known users, by name.
        redirect_urls: The permitted redirect URLs.
        key: The signing key.
        checks_pkce: Whether the token endpoint compares the verifier with the challenge.
        is_thin: Whether ID tokens omit the user's claims, so that clients must request them from
            the userinfo endpoint.
        replaced: Claims to replace in ID tokens, for tests of tokens that must be rejected.
        answered: Claims to replace in answers of the userinfo endpoint.
        spoil: A function that changes an ID token after it was signed.
        codes, tokens: The issued authorization codes and access tokens.
        paths: The paths of all requests.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.redirect_urls: list[str] = []
        self.key = _new_key()
        self.paths: list[str] = []
        self.codes: dict[str, _Code] = {}
        self.tokens: dict[str, str] = {}
        self._app = _app(self)
        self._server: BaseWSGIServer | None = None
        self.be_honest()

    def be_honest(self) -> None:
        """Reset the users and all misbehaviour."""
        self.users: dict[str, dict[str, Any]] = {
            "anna": {"preferred_username": "anna", "groups": ["team-a", "ops"]},
            "ben": {"preferred_username": "ben", "groups": ["team-b"]},
            "carl": {"preferred_username": "carl"},
        }
        self.checks_pkce = True
        self.is_thin = False
        self.replaced: dict[str, Any] = {}
        self.answered: dict[str, Any] = {}
        self.spoil: Callable[[str], object] = lambda token: token

    def start(self) -> None:
        """Start the server; the port is the same each time."""
        if self._server is None:
            until(self._listens)

    def _listens(self) -> bool:
        try:
            self._server = make_server(
                "127.0.0.1", self.port, self._app, threaded=True, request_handler=_Quiet
            )
        except SystemExit:  # the port is still in use
            return False
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return True

    def stop(self) -> None:
        """Stop the server, if it is running."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def rotate(self) -> None:
        """Replace the signing key by a new one."""
        self.key = _new_key()

    def token(self, name: str, header: dict[str, Any] | None = None, **changed: object) -> str:
        """A signed token for Repertory's client; claims that are None are left out."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": f"id-{name}",
            "iat": now,
            "exp": now + LIFETIME_S,
            **self.users[name],
            **changed,
        }
        given = {"alg": "RS256", "kid": self.key.kid, **(header or {})}
        kept = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(given, kept, self.key, [given["alg"]])


@contextmanager
def openid_provider() -> Iterator[OpenIdProvider]:
    """Run a provider."""
    provider = OpenIdProvider()
    provider.start()
    try:
        yield provider
    finally:
        provider.stop()


class _Quiet(WSGIRequestHandler):
    def log(self, *_: object) -> None:
        """Log nothing."""


@dataclass(frozen=True)
class _User:
    name: str


class _Client(ClientMixin):
    """Repertory's client, which has a secret, or the client of an agent host, without a secret."""

    def __init__(self, provider: OpenIdProvider, client_id: str) -> None:
        self.client_id = client_id
        self._provider = provider

    def get_client_id(self) -> str:
        return self.client_id

    def get_allowed_scope(self, scope: Collection[str] | str) -> str:
        return scope if isinstance(scope, str) else " ".join(scope)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self._provider.redirect_urls

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == ("none" if self.client_id == HOST_ID else "client_secret_basic")

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


@dataclass(frozen=True)
class _Code(AuthorizationCodeMixin):
    redirect_uri: str
    scope: str
    nonce: str | None
    user: _User
    client_id: str
    code_challenge: str | None
    code_challenge_method: str | None

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> None:
        return None

    def get_acr(self) -> None:
        return None

    def get_amr(self) -> None:
        return None


class _CodeGrant(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "none")
    provider: OpenIdProvider

    def save_authorization_code(self, code: str, request: Any) -> None:
        given = request.payload.data
        self.provider.codes[code] = _Code(
            redirect_uri=request.payload.redirect_uri,
            scope=request.payload.scope,
            nonce=given.get("nonce"),
            user=request.user,
            client_id=request.client.get_client_id(),
            code_challenge=given.get("code_challenge"),
            code_challenge_method=given.get("code_challenge_method"),
        )

    def query_authorization_code(self, code: str, client: ClientMixin) -> _Code | None:
        found = self.provider.codes.pop(code, None)  # a code can be used only once
        return found if found and found.client_id == client.get_client_id() else None

    def delete_authorization_code(self, authorization_code: _Code) -> None:
        """Do nothing: ``query_authorization_code`` has deleted the code."""

    def authenticate_user(self, authorization_code: _Code) -> _User:
        return authorization_code.user


class _Challenge(CodeChallenge):
    def __init__(self, provider: OpenIdProvider) -> None:
        super().__init__(required=True)
        self._provider = provider

    def validate_code_verifier(self, grant: Any, result: Any) -> None:
        if self._provider.checks_pkce:
            super().validate_code_verifier(grant, result)


class _IdTokens(OpenIDCode):
    def __init__(self, provider: OpenIdProvider) -> None:
        super().__init__(require_nonce=False)
        self._provider = provider

    def exists_nonce(self, nonce: str, request: object) -> bool:
        return False

    def encode_id_token(self, token: object, request: Any) -> Any:
        provider, code = self._provider, request.authorization_code
        name = request.user.name
        thin: dict[str, Any] = dict.fromkeys(provider.users[name]) if provider.is_thin else {}
        changed = {"nonce": code.nonce} | thin | provider.replaced
        return provider.spoil(provider.token(name, **changed))


class _Issuer(IssuerParameter):
    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def get_issuer(self) -> str:
        return self._issuer


def _app(provider: OpenIdProvider) -> flask.Flask:
    app = flask.Flask(__name__)

    def access_token(client: _Client, grant_type: str, user: _User, scope: str) -> str:
        """A JWT for the requested resource; Repertory's own client requests no resource."""
        resource = flask.request.form.get("resource")
        made = provider.token(user.name, {"typ": "at+jwt"}, aud=resource or "another")
        provider.tokens[made] = user.name
        return made

    app.config["OAUTH2_ACCESS_TOKEN_GENERATOR"] = access_token
    clients = {name: _Client(provider, name) for name in (CLIENT_ID, HOST_ID)}
    server = AuthorizationServer(app, clients.get, lambda token, request: None)
    code_grant = type("Grant", (_CodeGrant,), {"provider": provider})
    server.register_grant(code_grant, [_IdTokens(provider), _Challenge(provider)])
    server.register_extension(_Issuer(provider.issuer))

    @app.before_request
    def count() -> None:
        provider.paths.append(flask.request.path)

    @app.get("/.well-known/openid-configuration")
    def discovery() -> dict[str, Any]:
        return {
            "issuer": provider.issuer,
            "authorization_endpoint": f"{provider.issuer}/authorize",
            "token_endpoint": f"{provider.issuer}/token",
            "userinfo_endpoint": f"{provider.issuer}/userinfo",
            "jwks_uri": f"{provider.issuer}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
        }

    @app.get("/keys")
    def keys() -> Any:
        return KeySet([provider.key]).as_dict(private=False)

    @app.route("/authorize", methods=["GET", "POST"])
    def authorize() -> Any:
        name = flask.request.form.get("name", "")
        grant = server.get_consent_grant()  # type: ignore[no-untyped-call] # Authlib has no types
        if flask.request.method == "GET":
            return _FORM
        return server.create_authorization_response(
            grant_user=_User(name) if name in provider.users else None, grant=grant
        )

    @app.post("/token")
    def token() -> Any:
        return server.create_token_response()

    @app.get("/userinfo")
    def userinfo() -> Any:
        sent = flask.request.headers.get("Authorization", "").removeprefix("Bearer ")
        name = provider.tokens.get(sent)
        if name is None:
            return {"error": "invalid_token"}, 401
        return {"sub": f"id-{name}", **provider.users[name], **provider.answered}

    return app


def _new_key() -> RSAKey:
    return rsa_key(uuid4().hex)


def rsa_key(name: str | None) -> RSAKey:
    """A new RSA key with the given key id; ``None`` gives an empty id."""
    return RSAKey.generate_key(2_048, {"kid": name or "", "use": "sig", "alg": "RS256"})
