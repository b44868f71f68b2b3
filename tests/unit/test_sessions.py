"""Session cookies can be read only by the seal that made them, until they expire."""

import base64
import json
import secrets
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory_query.sign_in.sessions import MAX_LENGTH, PendingSignIn, Seal, Session

ANNA = Session("anna", ("ops", "team-a"))


def test_a_cookie_can_only_be_read_by_the_same_seal() -> None:
    """Another secret, purpose or type cannot read it."""
    cookie = Seal("secret", "session", 60).close(ANNA)
    assert Seal("secret", "session", 60).open(cookie, Session) == ANNA
    assert Seal("secret", "session", 60).open(cookie, PendingSignIn) is None
    assert Seal("other", "session", 60).open(cookie, Session) is None
    assert Seal("secret", "sign-in", 60).open(cookie, Session) is None
    assert "anna" not in cookie


def test_every_cookie_is_different() -> None:
    """A person who signs in again gets another cookie."""
    seal = Seal("secret", "session", 60)
    assert seal.close(ANNA) != seal.close(ANNA)


def test_a_cookie_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's clock decides, whatever the browser does."""
    seal = Seal("secret", "session", 60)
    cookie = seal.close(ANNA)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert seal.open(cookie, Session) is None


def test_a_changed_cookie_is_refused() -> None:
    """A change of any character is detected; a cookie that is too long is refused too."""
    seal = Seal("secret", "session", 60)
    cookie = seal.close(ANNA)
    for place, character in enumerate(cookie[:-1]):  # the last one has unused bits
        other = "A" if character != "A" else "B"
        assert seal.open(cookie[:place] + other + cookie[place + 1 :], Session) is None
    endless = Session("anna", (secrets.token_hex(MAX_LENGTH),))
    assert seal.open(seal.close(endless), Session) is None


@pytest.mark.parametrize("header", [{"alg": "dir", "enc": ["A256GCM"]}, {"crit": 5}, [], 1])
def test_a_forged_header_is_refused(header: object) -> None:
    """Values of any type in the header are refused without an error."""
    head = base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
    assert Seal("secret", "session", 60).open(f"{head}..AAAA.AAAA.AAAA", Session) is None


@given(st.text())
def test_arbitrary_text_is_refused(text: str) -> None:
    """No text raises an error."""
    seal = Seal("secret", "session", 60)
    assert seal.open(text, Session) is None
    assert seal.open(f"ey.{text}.x.y.z", Session) is None
