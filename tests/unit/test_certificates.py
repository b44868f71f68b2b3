"""The certificates that are trusted for HTTPS."""

import ssl
from pathlib import Path

import pytest

from repertory.system import certificates


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """Forget the certificates that earlier tests read."""
    certificates.of_system.cache_clear()


def test_only_the_configured_certificates_are_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the configured files are missing, no other certificates replace them."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    assert certificates.of_system().cert_store_stats()["x509_ca"] == 0


def test_certificates_are_found_even_if_python_knows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS, Python from python.org knows none until they are installed."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    places = ssl.get_default_verify_paths()._replace(cafile="", capath="")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: places)
    assert certificates.of_system().cert_store_stats()["x509_ca"] > 50
