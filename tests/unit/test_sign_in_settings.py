"""The settings of the sign-in: required ones, invalid values, and their error messages."""

from pathlib import Path

import msgspec
import pytest

from repertory.errors import ConfigurationError
from repertory.settings import load
from repertory.values import SETTINGS, Values
from repertory_query.sign_in.openid import OpenId
from repertory_query.sign_in.people import People, people_of
from repertory_query.sign_in.person import Person

GIVEN = {
    "oidc_issuer": "https://login.example.org",
    "oidc_client_id": "repertory",
    "oidc_client_secret": "0123456789abcdef",
    "public_url": "https://repertory.example.org",
    "read_groups": "*",
}


def _values(**changed: object) -> Values:
    return msgspec.convert({**GIVEN, **changed}, Values)


def _people(**changed: object) -> People | None:
    return people_of(_values(**changed))


def test_without_an_issuer_there_is_no_sign_in() -> None:
    """``people_of`` returns None unless an issuer is set."""
    assert people_of(Values()) is None
    assert people_of(Values(read_groups="a")) is None


def test_the_redirect_url_starts_with_the_public_url() -> None:
    """Without a public URL, it starts with the server's address on the loopback interface."""
    assert OpenId(_values()).redirect_url() == "https://repertory.example.org/login/callback"
    own = OpenId(_values(public_url="", host="0.0.0.0", port=8_000))
    assert own.redirect_url("/projects/ab") == "http://127.0.0.1:8000/projects/ab/login/callback"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"oidc_issuer": ""}, "oidc.issuer is missing"),
        ({"oidc_issuer": "login.example.org"}, "must be the https URL"),
        ({"oidc_issuer": "http://login.example.org"}, "must be the https URL"),
        ({"oidc_issuer": "https://user:password@login.example.org"}, "must be the https URL"),
        ({"oidc_issuer": "ftp://127.0.0.1"}, "must be the https URL"),
        ({"oidc_issuer": "https://["}, "must be the https URL"),
        ({"oidc_issuer": "https://login.example.org#realm"}, "must be the https URL"),
        ({"oidc_client_id": ""}, "oidc.client_id is missing"),
        ({"oidc_client_secret": ""}, "Set one of oidc.client_secret"),
        ({"oidc_client_secret_file": "x"}, "Set one of oidc.client_secret"),
        ({"oidc_client_secret": "", "oidc_client_secret_file": "/no/file"}, "No such file"),
        ({"oidc_client_secret": "short"}, "fewer than 16 characters"),
        ({"read_groups": ""}, "access.read_groups"),
        ({"public_url": "http://repertory.example.org"}, "must be https"),
        ({"public_url": "https://repertory.example.org/below"}, "only a host"),
        ({"public_url": "https://repertory.example.org?x"}, "only a host"),
        ({"public_url": "repertory.example.org"}, "must be https"),
    ],
)
def test_a_missing_or_wrong_setting_is_named(changed: dict[str, str], why: str) -> None:
    """No message shows the secret."""
    with pytest.raises(ConfigurationError, match=why.replace(".", r"\.")) as caught:
        _people(**changed)
    assert "0123456789" not in str(caught.value)


def test_the_secret_may_be_in_a_file(tmp_path: Path) -> None:
    """It must be a regular file, and its line end is ignored: sessions match those of the value."""
    file = tmp_path / "secret"
    file.write_text(f"{GIVEN['oidc_client_secret']}\n")
    by_file = OpenId(_values(oidc_client_secret="", oidc_client_secret_file=str(file)))
    anna = Person("anna", frozenset({"team-a"}))
    assert by_file.person_of_session(OpenId(_values()).session_of(anna)) == anna
    for wrong in (tmp_path, Path("/dev/zero")):
        with pytest.raises(ConfigurationError, match=r"oidc\.client_secret_file"):
            _people(oidc_client_secret="", oidc_client_secret_file=str(wrong))


@pytest.mark.parametrize(
    "field", ["oidc_issuer", "oidc_client_id", "oidc_client_secret", "public_url"]
)
def test_a_session_of_another_server_is_invalid(field: str) -> None:
    """Servers share sessions only if they have the same provider, client and URL."""
    anna = Person("anna", frozenset({"team-a"}))
    cookie = OpenId(_values()).session_of(anna)
    assert OpenId(_values()).person_of_session(cookie) == anna
    assert OpenId(_values(**{field: f"{GIVEN[field]}2"})).person_of_session(cookie) is None


@pytest.mark.parametrize(
    "field",
    [name for name in SETTINGS if SETTINGS[name].key.startswith(("oidc.", "proxy.", "access."))]
    + ["public_url"],
)
def test_a_discovered_configuration_cannot_set_the_sign_in(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a cloned project could let strangers in."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    section, name = SETTINGS[field].key.split(".")
    (tmp_path / "repertory.toml").write_text(f'[{section}]\n{name} = "x"\n')
    with pytest.raises(ConfigurationError, match="cannot set"):
        load({}, tmp_path, {})
