"""The cookies of sessions: who can read them, and how long."""

import base64
import json
import secrets
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory_query.sign_in.sessions import MAX_LENGTH, PendingSignIn, Seal, Session

ANNA = Session("anna", ("ops", "team-a"))


def test_a_cookie_is_read_by_the_same_seal_alone() -> None:
    """Not with another secret, for another purpose, or as something else."""
    cookie = Seal("secret", "session", 60).close(ANNA)
    assert Seal("secret", "session", 60).open(cookie, Session) == ANNA
    assert Seal("secret", "session", 60).open(cookie, PendingSignIn) is None
    assert Seal("other", "session", 60).open(cookie, Session) is None
    assert Seal("secret", "sign-in", 60).open(cookie, Session) is None
    assert "anna" not in cookie


def test_no_two_cookies_are_the_same() -> None:
    """A person who signs in again has another one."""
    seal = Seal("secret", "session", 60)
    assert seal.close(ANNA) != seal.close(ANNA)


def test_a_cookie_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """By our clock, whatever the browser does with it."""
    seal = Seal("secret", "session", 60)
    cookie = seal.close(ANNA)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert seal.open(cookie, Session) is None


def test_a_changed_cookie_is_nobodys() -> None:
    """Each character of it counts, and an endless one is not read."""
    seal = Seal("secret", "session", 60)
    cookie = seal.close(ANNA)
    for place, character in enumerate(cookie[:-1]):  # the last one has unused bits
        other = "A" if character != "A" else "B"
        assert seal.open(cookie[:place] + other + cookie[place + 1 :], Session) is None
    endless = Session("anna", (secrets.token_hex(MAX_LENGTH),))
    assert seal.open(seal.close(endless), Session) is None


@pytest.mark.parametrize("header", [{"alg": "dir", "enc": ["A256GCM"]}, {"crit": 5}, [], 1])
def test_a_forged_head_is_refused(header: object) -> None:
    """Of whatever types."""
    head = base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
    assert Seal("secret", "session", 60).open(f"{head}..AAAA.AAAA.AAAA", Session) is None


@given(st.text())
def test_any_text_is_refused(text: str) -> None:
    """Without an error."""
    seal = Seal("secret", "session", 60)
    assert seal.open(text, Session) is None
    assert seal.open(f"ey.{text}.x.y.z", Session) is None
