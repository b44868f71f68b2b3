"""Which addresses belong to this machine, and where secrets may be sent."""

from pathlib import Path

import pytest

from repertory.errors import ConfigurationError, SourceError
from repertory.sources.mcp.oauth import check_address
from repertory.sources.mcp_registry.bundle import unpacked
from repertory.sources.mcp_registry.document import Package
from repertory.system.addresses import is_confidential, is_this_machine
from repertory.usage.digest import check_webhook
from repertory_query.sign_in.failures import ProviderError
from repertory_query.sign_in.provider import Provider

HERE = ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "::1%lo", "::ffff:127.0.0.1"]
ELSEWHERE = ["", "example.com", "localhost.example.com", "xlocalhost", "0.0.0.0", "10.0.0.1", "::2"]
ELSEWHERE += ["127.0.0.1%.example.com", "127.0.0.1%lo"]  # names, because only IPv6 has zones


@pytest.mark.parametrize("host", [*HERE, *ELSEWHERE])
def test_all_checks_agree_on_the_hosts_of_this_machine(host: str) -> None:
    """Without encryption, secrets are sent only to this machine, whichever check decides."""
    is_here = host in HERE
    assert is_this_machine(host) is is_here
    url = f"http://[{host}]:80/a" if ":" in host else f"http://{host}:80/a"
    assert is_confidential(url) is is_here
    for check in (check_webhook, lambda one: check_address(one, one), Provider):
        if is_here:
            check(url)
            continue
        with pytest.raises((ConfigurationError, ProviderError, SourceError)):
            check(url)


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("https://example.com/a", True),
        ("https://bücher.example/a", True),
        ("https://example..com/a", False),
        ("HTTPS://example.com:443", True),
        ("https://", False),
        ("https://example.com:a", False),
        ("https://[::", False),
        ("ftp://localhost", False),
        ("http://localhost:x@example.com/", False),
        ("localhost", False),
    ],
)
def test_secrets_need_encryption_or_this_machine(url: str, *, is_safe: bool) -> None:
    """Other schemes and invalid URLs are unsafe; a name before an at sign is not the host."""
    assert is_confidential(url) is is_safe


def test_a_bundle_is_not_fetched_over_http_from_a_misleading_url(tmp_path: Path) -> None:
    """``localhost:x@`` is a user and a password; the host is ``example.com``."""
    package = Package(registry_type="mcpb", identifier="http://localhost:x@example.com/a.mcpb")
    with pytest.raises(SourceError, match="not at an HTTPS URL"):
        unpacked(package, tmp_path / "into")


@pytest.mark.parametrize("url", ["http://localhost:1/a", "https://127.0.0.1/a", "http://[::1]:1/a"])
def test_a_remote_server_may_not_name_a_sign_in_on_this_machine(url: str) -> None:
    """It could make us send requests to local programs. A local server may name local addresses."""
    with pytest.raises(SourceError, match="names an address of this machine for its sign-in"):
        check_address(url, "https://example.com/mcp")
    check_address(url, "http://localhost:2/mcp")
