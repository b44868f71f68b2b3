"""The certificates that are trusted for HTTPS."""

import ssl
from pathlib import Path

import pytest

from repertory import certificates


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """What an earlier test read is read again."""
    certificates.of_system.cache_clear()


def test_those_of_the_system_are_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Or those that the user names, and no others, although they are missing."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    assert certificates.of_system().cert_store_stats()["x509_ca"] == 0


def test_there_are_some_where_python_knows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the one of python.org does on macOS, before it was given some."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    places = ssl.get_default_verify_paths()._replace(cafile="", capath="")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: places)
    assert certificates.of_system().cert_store_stats()["x509_ca"] > 50
