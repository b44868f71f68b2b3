"""Names and groups from an identity provider are checked, and groups determine scopes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.errors import ConfigurationError
from repertory.keys import Scope
from repertory.values import Values
from repertory_query.sign_in.person import MAX_NAME_LENGTH, Roles, person_of


@pytest.mark.parametrize("name", ["anna", "anna@example.org", "Zoë", "安娜", "a.b+c-d_e"])
def test_a_plain_name_is_unchanged(name: str) -> None:
    """It may have letters of any script; spaces around it are removed."""
    assert person_of(name, []).name == name
    assert person_of(f" {name}\t", []).name == name


def test_changed_names_of_different_people_stay_different() -> None:
    """A digest is appended to a name whose characters are replaced or cut."""
    names = ["an na", "an\nna", "an_na", "an\u202ena", "a" * 64, "a" * 65, "a" * 66]
    found = [person_of(name, []).name for name in names]
    assert len(set(found)) == len(names)
    assert found[2] == "an_na"
    assert all("~" in name for name in (*found[:2], found[3]))


@given(st.text())
def test_a_name_is_safe_in_a_log(name: str) -> None:
    """Any name becomes one short word without quotes, spaces or invisible characters."""
    if not name.strip():
        with pytest.raises(ValueError, match="no person"):
            person_of(name, [])
        return
    found = person_of(name, []).name
    assert 0 < len(found) <= MAX_NAME_LENGTH
    assert found.isprintable()
    assert not set(found) & set(" \"'<>&\\/:,;={}[]")


@pytest.mark.parametrize("name", [None, "", "  ", 7, ["anna"], {"a": 1}, True])
def test_a_person_without_a_name_is_refused(name: object) -> None:
    """Every caller must have a name that is a nonempty text."""
    with pytest.raises(ValueError, match="no person"):
        person_of(name, ["ops"])


def test_the_names_of_groups_are_unchanged() -> None:
    """Invalid values are left out, and a single text is one group."""
    listed = ["ops", "Ops", " ops", "CN=ops", "", "x" * 201, "a\nb", "\u202eops", 7, None, ["ops"]]
    assert person_of("a", listed).groups == {"ops", "Ops", " ops", "CN=ops"}
    assert person_of("a", "ops,admins").groups == {"ops,admins"}
    for none in (None, {"ops": True}, 7, True):
        assert person_of("a", none).groups == frozenset()
    with pytest.raises(ValueError, match="more than 200 groups"):
        person_of("a", [str(n) for n in range(201)])


def test_the_highest_scope_includes_the_others() -> None:
    """A group that no setting names has no scope."""
    roles = Roles(Values(read_groups="a, b", call_groups="c", admin_groups=" d ,"))
    assert roles.scopes(["x"]) == frozenset()
    assert roles.scopes([]) == frozenset()
    assert roles.scopes(["b", "x"]) == {Scope.READ}
    assert roles.scopes(["a", "c"]) == {Scope.READ, Scope.CALL}
    assert roles.scopes(["d"]) == frozenset(Scope)
    assert roles.scopes(["", "A", " a"]) == frozenset()


def test_a_star_in_a_setting_stands_for_everyone() -> None:
    """A person's group named `*` has no special meaning."""
    roles = Roles(Values(read_groups="*", admin_groups="ops"))
    assert roles.scopes([]) == {Scope.READ}
    assert Roles(Values(read_groups="a")).scopes(["*"]) == frozenset()


def test_the_settings_must_give_a_scope_to_some_group() -> None:
    """Otherwise a sign-in would be useless."""
    for values in (Values(), Values(read_groups=" , ")):
        with pytest.raises(ConfigurationError, match=r"access\.read_groups"):
            Roles(values)
