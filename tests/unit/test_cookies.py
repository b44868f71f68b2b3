"""The cookies of browsers that have signed in."""

import time

import pytest
from starlette.requests import HTTPConnection

from repertory_query.access import cookies


def test_a_cookie_is_valid_only_for_its_secret_and_name() -> None:
    """A changed cookie is invalid, and a cookie does not contain the secret."""
    value = cookies.new_value("secret", "name")
    assert cookies.is_valid(value, "secret", "name")
    assert not cookies.is_valid(value, "other", "name")
    assert not cookies.is_valid(value, "secret", "other")
    assert "secret" not in value
    expires, _, mac = value.partition(".")
    changed = (f"{int(expires) + 1}.{mac}", f"{expires}.", f"\u0661.{mac}", f"{'9' * 5_000}.{mac}")
    for wrong in ("", ".", mac, *changed):
        assert not cookies.is_valid(wrong, "secret", "name")


def test_quotes_in_cookies_are_read_in_linear_time() -> None:
    """Anyone may send them. In quadratic time, this many would take half an hour."""
    headers = [(b"cookie", b'a="' + b'\\"' * 300_000 + b'"; b = c=d'), (b"cookie", b"e=f; g")]
    found = cookies.cookies_of(HTTPConnection({"type": "http", "headers": headers}))
    assert {name: found[name] for name in "beg"} == {"b": "c=d", "e": "f", "g": ""}


def test_a_cookie_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is then invalid even if the browser keeps it."""
    value = cookies.new_value("secret", "name")
    later = time.time() + cookies.LIFETIME_S + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert not cookies.is_valid(value, "secret", "name")
