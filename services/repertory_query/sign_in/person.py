"""A person identified by a provider or a proxy, and the scopes of the person's groups."""

import hashlib
import re
from collections.abc import Iterable

import msgspec

from repertory.errors import ConfigurationError
from repertory.keys import Scope
from repertory.text import listed
from repertory.values import Values

EVERYONE = "*"  # in a setting: everyone who signs in, even without groups
MAX_NAME_LENGTH = 64
MAX_GROUPS = 200
MAX_GROUP_LENGTH = 200
_UNSAFE = re.compile(r"[^\w.@+-]")


class Person(msgspec.Struct, frozen=True):
    """A name that is safe in logs, and groups exactly as given."""

    name: str
    groups: frozenset[str]


def person_of(name: object, groups: object) -> Person:
    """A person from untrusted values.

    A name keeps only letters, digits and ``.@+-_``, at most 64. If this changes it, a digest of the
    original name is added, so that different people have different names. A single string is one
    group. Values that are not strings, are empty or too long, or have invisible characters are
    ignored.

    Raises:
        ValueError: There is no name, or there are more than 200 groups.
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError("it names no person")
    given = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    if len(given) > MAX_GROUPS:
        raise ValueError(
            f"it names more than {MAX_GROUPS} groups; let it name only those that matter here"
        )
    return Person(_cleaned(name.strip()), frozenset(one for one in given if _is_group(one)))


class Roles:
    """The scopes of groups.

    Args:
        values: The settings.

    Raises:
        ConfigurationError: No group has a scope.
    """

    def __init__(self, values: Values) -> None:
        self._groups = {
            Scope.READ: frozenset(listed(values.read_groups)),
            Scope.CALL: frozenset(listed(values.call_groups)),
            Scope.ADMIN: frozenset(listed(values.admin_groups)),
        }
        if not any(self._groups.values()):
            raise ConfigurationError(
                "No person who signs in may do anything: set access.read_groups to groups, or to * "
                "for everyone who can sign in."
            )

    def scopes(self, groups: Iterable[str]) -> frozenset[Scope]:
        """The scopes of a person with these groups: the highest one, and those it includes."""
        own = {EVERYONE, *groups}
        held = [scope for scope in Scope if own & self._groups[scope]]
        return held[-1].included if held else frozenset()


def _cleaned(name: str) -> str:
    safe = _UNSAFE.sub("_", name[:MAX_NAME_LENGTH])
    if safe == name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{safe[: MAX_NAME_LENGTH - 9]}~{digest}"


def _is_group(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_GROUP_LENGTH and value.isprintable()
