"""Proof that a server is the one that left a note, checked before anything is sent to it.

After a crash, another program may listen on the port that the note names.
"""

import hashlib
import hmac
import secrets

HEADER = "Repertory-Challenge"  # sent with a request for /healthz
MAX_LENGTH = 100  # characters of a challenge


def challenge() -> str:
    """A new challenge."""
    return secrets.token_urlsafe(16)


def proof_of(token: str, challenge: str) -> str:
    """The answer to a challenge, which requires the token."""
    text = f"repertory proof {challenge}"
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


def is_proof(given: str, token: str, challenge: str) -> bool:
    """Whether an answer to a challenge proves that the server has the token."""
    return hmac.compare_digest(given.encode(), proof_of(token, challenge).encode())
