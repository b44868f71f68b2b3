"""Cookies that only this server's processes can make and read.

Nothing is stored: each process with the same settings reads the cookies of the others, also after
a restart, and no number of sessions takes memory. Another client secret ends them all.
"""

import hashlib
import hmac
import time
from typing import TypeVar

import msgspec
from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

MAX_LENGTH = 3_900  # characters of a cookie; browsers drop those of more than 4,096 bytes
SESSION_S = 8 * 3_600  # until a person signs in again, with the groups of that time
PENDING_S = 600  # for a person to sign in at the provider

_HEADER = {"alg": "dir", "enc": "A256GCM", "zip": "DEF"}


class Session(msgspec.Struct, frozen=True):
    """Who is signed in."""

    name: str
    groups: tuple[str, ...]


class Pending(msgspec.Struct, frozen=True):
    """A sign-in that a browser began.

    Attributes:
        state: What the provider gives back to the same browser.
        nonce: What the provider puts into the token.
        verifier: The secret to the challenge that the provider was given (PKCE).
        target: Where to go afterwards.
    """

    state: str
    nonce: str
    verifier: str
    target: str


class _Sealed(msgspec.Struct, frozen=True):
    until: float
    content: msgspec.Raw


T = TypeVar("T", Session, Pending)


class Seal:
    """Makes and reads the cookies of one purpose.

    Args:
        secret: A secret of all processes of the server.
        purpose: No other seal reads these cookies.
        lifetime_s: How long they are valid.
    """

    def __init__(self, secret: str, purpose: str, lifetime_s: int) -> None:
        digest = hmac.new(secret.encode(), f"repertory {purpose}".encode(), hashlib.sha256)
        self._key = OctKey.import_key(digest.digest())
        self.lifetime_s = lifetime_s

    def close(self, content: Session | Pending) -> str:
        """The value of a cookie; it may be longer than browsers keep."""
        until = time.time() + self.lifetime_s
        sealed = _Sealed(until, msgspec.Raw(msgspec.json.encode(content)))
        return jwe.encrypt_compact(_HEADER, msgspec.json.encode(sealed), self._key)

    def open(self, value: str, kind: type[T]) -> T | None:
        """The content of a cookie; None if it is another's or has expired."""
        if not 0 < len(value) <= MAX_LENGTH:
            return None
        try:
            found = jwe.decrypt_compact(value, self._key, algorithms=[*_HEADER.values()])
            sealed = msgspec.json.decode(found.plaintext or b"", type=_Sealed)
            return msgspec.json.decode(sealed.content, type=kind) if self._lasts(sealed) else None
        # Headers of a wrong type are TypeErrors; msgspec's errors are ValueErrors.
        except (JoseError, ValueError, TypeError):
            return None

    def _lasts(self, sealed: _Sealed) -> bool:
        return sealed.until > time.time()
