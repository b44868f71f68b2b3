"""Cookies that only this server's processes can make and read.

Nothing is stored: each process with the same settings can read the cookies of the others, even
after a restart, and sessions take no memory. A new client secret ends all of them.
"""

import hashlib
import hmac
import time
from typing import TypeVar

import msgspec
from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

MAX_LENGTH = 3_900  # characters of a cookie; browsers drop cookies of more than 4,096 bytes
SESSION_S = 8 * 3_600  # until a person must sign in again, which updates the groups
PENDING_S = 600  # for a person to sign in at the provider

_HEADER = {"alg": "dir", "enc": "A256GCM", "zip": "DEF"}


class Session(msgspec.Struct, frozen=True):
    """The person who is signed in."""

    name: str
    groups: tuple[str, ...]


class PendingSignIn(msgspec.Struct, frozen=True):
    """A pending sign-in of a browser.

    Attributes:
        state: The value that the provider returns through the same browser.
        nonce: The value that the provider puts into the token.
        verifier: The secret for the challenge that was sent to the provider (PKCE).
        target: The address to go to afterwards.
    """

    state: str
    nonce: str
    verifier: str
    target: str


class _SealedContent(msgspec.Struct, frozen=True):
    until: float
    content: msgspec.Raw


T = TypeVar("T", Session, PendingSignIn)


class Seal:
    """Makes and reads the cookies of one purpose.

    Args:
        secret: A secret that all processes of the server share.
        purpose: The purpose of the cookies; a seal for another purpose cannot read them.
        lifetime_s: How long the cookies are valid.
    """

    def __init__(self, secret: str, purpose: str, lifetime_s: int) -> None:
        digest = hmac.new(secret.encode(), f"repertory {purpose}".encode(), hashlib.sha256)
        self._key = OctKey.import_key(digest.digest())
        self.lifetime_s = lifetime_s

    def close(self, content: Session | PendingSignIn) -> str:
        """The value of a cookie, which may be too long for browsers; see ``MAX_LENGTH``."""
        until = time.time() + self.lifetime_s
        sealed = _SealedContent(until, msgspec.Raw(msgspec.json.encode(content)))
        return jwe.encrypt_compact(_HEADER, msgspec.json.encode(sealed), self._key)

    def open(self, value: str, kind: type[T]) -> T | None:
        """The content of a cookie; None if this seal did not make it, or if it has expired."""
        if not 0 < len(value) <= MAX_LENGTH:
            return None
        try:
            found = jwe.decrypt_compact(value, self._key, algorithms=[*_HEADER.values()])
            sealed = msgspec.json.decode(found.plaintext or b"", type=_SealedContent)
            has_expired = sealed.until <= time.time()
            return None if has_expired else msgspec.json.decode(sealed.content, type=kind)
        # Headers of a wrong type raise TypeErrors; msgspec's errors are ValueErrors.
        except (JoseError, ValueError, TypeError):
            return None
