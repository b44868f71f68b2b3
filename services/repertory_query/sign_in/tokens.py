"""Checks the provider's tokens: first the signature, then the claims."""

from typing import Any

from joserfc import jws, jwt
from joserfc.errors import ClaimError, ExpiredTokenError, JoseError
from joserfc.jwk import Key
from joserfc.jws import JWSRegistry
from joserfc.jwt import JWTClaimsRegistry

from repertory_query.sign_in.failures import TokenError
from repertory_query.sign_in.provider import Provider

# Only asymmetric ones, because with "none" or HS256 anyone could sign.
ALGORITHMS = [f"{kind}{size}" for kind in ("RS", "PS", "ES") for size in (256, 384, 512)]
ALGORITHMS += ["EdDSA", "Ed25519"]
MAX_LENGTH = 16_384  # characters of a token
LEEWAY_S = 60  # for the difference between the provider's clock and ours
_TYPES = {"jwt", "at+jwt", "application/jwt", "application/at+jwt", ""}
_OTHER_TYPE = "The token is neither an ID token nor an access token."
_UNSIGNED = "The token is not signed by a key of the provider."
_REGISTRY = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)


def may_be_token(text: str) -> bool:
    """Whether a text has the form of a signed token."""
    return text.count(".") == 2 and len(text) <= MAX_LENGTH


async def claims_of(
    token: str, provider: Provider, audiences: list[str], nonce: str = ""
) -> dict[str, Any]:
    """The verified claims of a token.

    Args:
        token: An ID token, or an access token that is a JWT.
        provider: The provider that must have issued it.
        audiences: The accepted audiences.
        nonce: The nonce of the sign-in that it must belong to; empty for any.

    Raises:
        TokenError: The token is not valid.
        ProviderError: The provider's keys are unknown.
    """
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError) as error:
        raise TokenError("The token cannot be read.") from error
    if str(header.get("typ", "")).lower() not in _TYPES:
        raise TokenError(_OTHER_TYPE)
    if header.get("alg") not in ALGORITHMS:
        raise TokenError(_UNSIGNED)
    keys = _named(header, await provider.keys())
    found = _verified(token, keys)
    if found is None and (nonce or not keys):
        again = await provider.keys(again=True, at_once=bool(nonce))
        found = _verified(token, _named(header, again))
    if found is None:
        raise TokenError(_UNSIGNED)
    _check(found, provider.issuer, audiences, nonce)
    return found


def _named(header: dict[str, Any], keys: tuple[Key, ...]) -> list[Key]:
    """The keys that may have signed the token; all of them if it names no key."""
    wanted = header.get("kid")
    return [key for key in keys if wanted is None or key.kid == wanted]


def _verified(token: str, keys: list[Key]) -> dict[str, Any] | None:
    for key in keys:
        try:
            return jwt.decode(token, key, registry=_REGISTRY).claims
        except (JoseError, ValueError, TypeError):  # includes keys of another kind
            continue
    return None


def _check(claims: dict[str, Any], issuer: str, audiences: list[str], nonce: str) -> None:
    rules = JWTClaimsRegistry(
        leeway=LEEWAY_S,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "values": audiences},
        sub={"essential": True},
        exp={"essential": True},
        nonce={"essential": True, "value": nonce} if nonce else {"allow_blank": True},
    )
    try:
        rules.validate(claims)
    except ExpiredTokenError as error:
        raise TokenError("The token has expired; get another from the provider.") from error
    except ClaimError as error:
        text = f"The token is not valid here: its {error.claim} does not match."
        raise TokenError(text) from error
    if "events" in claims:  # a logout token has the same issuer, audience and key
        raise TokenError(_OTHER_TYPE)
