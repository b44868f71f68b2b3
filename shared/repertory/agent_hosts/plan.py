"""Plans the change to one configuration for connecting or undoing, without writing anything."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec

from repertory.agent_hosts.document import entry_in, has_holder, with_entry, without_entry
from repertory.agent_hosts.edits import EditError, Value
from repertory.agent_hosts.entries import (
    is_url,
    target_of,
    without_authorization,
    without_key,
)
from repertory.agent_hosts.host import Host, Machine, Scope
from repertory.agent_hosts.our_entry import VARIABLE
from repertory.agent_hosts.records import Record, Records, backup_of
from repertory.errors import ConfigurationError
from repertory.system.paths import lies_in
from repertory.system.untrusted_files import read_bytes
from repertory.trust import digest_of

MAX_FILE_SIZE = 32 * 2**20  # bytes; large, because Claude Code stores histories in it
_NUMBERS = (int, float)  # not bool: in some hosts, a flag allows tool calls without asking


class State(StrEnum):
    """The state of a configuration."""

    CONNECTED = "connected"
    DIFFERS = "differs"
    MISSING = "not connected"
    UNREADABLE = "unreadable"


class Target(msgspec.Struct, frozen=True):
    """The configuration file of a host for a scope. The file may be missing.

    Attributes:
        host: The host.
        scope: The scope.
        file: The path of the file.
        within: The project folder that must contain the file after links are resolved, since the
            project may be untrusted; None for the user's own file.
    """

    host: Host
    scope: Scope
    file: Path
    within: Path | None = None


class Plan(msgspec.Struct, frozen=True):
    """A change of a configuration.

    Attributes:
        target: The configuration.
        current: Its bytes now; None if the file is missing.
        before: Its bytes without the changes by Repertory, which undoing restores.
        after: Its bytes after the change; None if the file is to be removed.
        is_exact: Whether ``before`` is identical to the file before Repertory changed it.
    """

    target: Target
    current: bytes | None
    before: bytes | None
    after: bytes | None
    is_exact: bool = True

    @property
    def changes(self) -> bool:
        """Whether the plan changes the file."""
        return self.current != self.after


def target_for(host: Host, scope: Scope, machine: Machine) -> Target | None:
    """The configuration of a host for a scope; None if the host has none."""
    where = host.places.get(scope)
    within = machine.project if scope is Scope.PROJECT else None
    return Target(host, scope, where.file(machine), within) if where else None


def state_of(target: Target, wanted: Value) -> tuple[State, str]:
    """The state of a configuration, and the target of its entry or the reason of a read error.

    An existing entry with a URL counts as connected if the wanted entry has no URL, because the
    user chose the URL earlier.
    """
    try:
        data = read(target)
        entry = _entry(target, data) if data is not None else None
    except ConfigurationError as error:
        return State.UNREADABLE, str(error)
    if entry is None:
        return State.MISSING, ""
    is_wanted = _settled(target, wanted, entry) == entry or (is_url(entry) and not is_url(wanted))
    return State.CONNECTED if is_wanted else State.DIFFERS, target_of(entry)


def connecting(target: Target, wanted: Value, records: Records) -> Plan:
    """Plan how to connect a host.

    Raises:
        ConfigurationError: The configuration cannot be read or edited; the message names the line.
    """
    current, record = read(target), records.of(target.file)
    entry = _entry(target, current) if current is not None else None
    settled = _settled(target, wanted, entry)
    if entry == settled:
        return Plan(target, current, current, current)
    before = current
    if current is not None and entry is not None and record is not None:
        before = _undone(target, current, record)
    with _explained(target):
        after = with_entry(before or b"", target.host.syntax, target.host.keys, settled)
    return Plan(target, current, before, after)


def undoing(target: Target, records: Records) -> Plan:
    """Plan how to disconnect a host.

    If nothing else has changed, the original bytes are restored. Otherwise only the entry is
    removed, or replaced by the original entry.

    Raises:
        ConfigurationError: As for ``connecting``.
    """
    current = read(target)
    if current is None or _entry(target, current) is None:
        return Plan(target, current, current, current)
    record = records.of(target.file)
    before = _undone(target, current, record)
    digest = "" if before is None else digest_of(before)
    is_exact = record is not None and digest == record.before
    return Plan(target, current, before, before, is_exact)


def read(target: Target) -> bytes | None:
    """The bytes of a configuration; None if the file is missing.

    Raises:
        ConfigurationError: The file cannot be read, or a link leads out of its project.
    """
    file = target.file
    if target.within and not lies_in(file, target.within):
        raise ConfigurationError(
            f"{file} leads out of {target.within}, so it is neither read nor written; replace the "
            "link by a file."
        )
    try:
        return read_bytes(str(file), MAX_FILE_SIZE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from error


def _undone(target: Target, current: bytes, record: Record | None) -> bytes | None:
    """The bytes of a connected configuration without the changes by Repertory."""
    earlier = _backup(target.file, record)
    if record and digest_of(current) == record.after and (earlier is not None or not record.before):
        return earlier
    syntax, keys = target.host.syntax, target.host.keys
    with _explained(target):
        entry = entry_in(earlier, syntax, keys) if earlier is not None else None
        if entry is not None:
            return with_entry(current, syntax, keys, entry)
        keep = has_holder(earlier or b"", syntax, keys) if record else True
        return without_entry(current, syntax, keys, keep=keep)


def _backup(file: Path, record: Record | None) -> bytes | None:
    """The bytes of a backup; None if it is missing or does not match the record."""
    try:
        data = read_bytes(str(backup_of(file)), MAX_FILE_SIZE) if record else None
    except OSError:
        return None
    return data if record and data is not None and digest_of(data) == record.before else None


def _settled(target: Target, wanted: Value, entry: Value | None) -> Value:
    """The wanted entry, with other settings kept from an existing entry of the same kind.

    In a project's file, which may be untrusted, only numbers such as a timeout are kept, because a
    variable or a folder could make our program run other code.
    """
    if entry is None or is_url(entry) != is_url(wanted):
        return wanted
    if target.scope is Scope.PROJECT:
        return {**{name: one for name, one in entry.items() if type(one) in _NUMBERS}, **wanted}
    if is_url(wanted) and target_of(entry) != target_of(wanted):
        entry = without_key(entry)
    settled = {**entry, **wanted}
    variables, headers = entry.get("env"), entry.get("headers")
    if isinstance(variables, dict):  # drop a key that an earlier command wrote
        kept = {name: value for name, value in variables.items() if name != VARIABLE}
        settled["env"] = {**kept, **wanted.get("env", {})}
        if variables and not settled["env"]:
            del settled["env"]
    if isinstance(headers, dict) and "headers" in wanted:
        settled["headers"] = {**without_authorization(headers), **wanted["headers"]}
    return settled


def _entry(target: Target, data: bytes) -> Value | None:
    with _explained(target):
        return entry_in(data, target.host.syntax, target.host.keys)


@contextmanager
def _explained(target: Target) -> Iterator[None]:
    """Turn an ``EditError`` into a ``ConfigurationError`` that names the file and line."""
    try:
        yield
    except EditError as error:
        line = f":{error.line}" if error.line else ""
        raise ConfigurationError(f"{target.file}{line}: {error}.") from error
