"""Agent hosts, and how their configurations change."""

import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repertory.agent_hosts.document import secrets_in
from repertory.agent_hosts.host import Scope
from repertory.agent_hosts.our_entry import VARIABLE, OurServer, writes_key
from repertory.agent_hosts.plan import Plan, State, Target
from repertory.agent_hosts.records import backup_of
from repertory_admin import terminal
from repertory_admin.text import safe_lines, short_path

MAX_LINE_LENGTH = 240  # characters of a diff line; some configurations are a single line
_CONTEXT = 2  # lines before and after a change
_CACHES = {".cache", "Caches", "archive-v0"}  # folders above a program that uvx or pipx runs
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_STYLES = {
    State.CONNECTED: "green",
    State.DIFFERS: "yellow",
    State.MISSING: "dim",
    State.UNREADABLE: "red",
}


def row(target: Target, state: State, detail: str) -> dict[str, Any]:
    """A configuration as JSON."""
    return {
        "host": target.host.id,
        "title": target.host.title,
        "scope": target.scope,
        "state": state,
        "file": str(target.file),
        # Unlike ``Path.exists``, it does not raise an error in an unreadable folder.
        "exists": os.path.exists(target.file),  # noqa: PTH110 - see above
        "detail": detail,
    }


def table(rows: list[dict[str, Any]]) -> None:
    """Show configurations as a table."""
    terminal.show_table(
        ("Host", "Scope", "State", "Configuration", "Connected to"),
        [
            (
                one["host"],
                one["scope"],
                one["state"],
                short_path(one["file"]),
                short_path(one["detail"]),
            )
            for one in rows
        ],
        styles={"State": lambda state: _STYLES[State(state)], "Host": lambda _: "bold cyan"},
    )


def difference(change: Plan, *, to_stderr: bool) -> None:
    """Show a change to a configuration as a diff, with the values of variables hidden."""
    syntax = change.target.host.syntax
    secrets = {
        secret
        for data in (change.current, change.after)
        if data is not None
        for secret in secrets_in(data, syntax)
    }
    console = None
    if terminal.is_terminal() and not to_stderr:
        from repertory_admin import drawing  # noqa: PLC0415 - rich takes a tenth of a second

        console = drawing.console()
    for line in _lines(change):
        for secret in sorted(secrets, key=len, reverse=True):
            line = line.replace(secret, "****")  # noqa: PLW2901 - the line, with one secret less
        shown = safe_lines(line)
        if len(shown) > MAX_LINE_LENGTH:
            shown = shown[: MAX_LINE_LENGTH - 1] + "…"
        if console:
            drawing.line(console, shown, _COLOURS.get(shown[:1], ""))
        else:
            print(shown, file=sys.stderr if to_stderr else sys.stdout)


def outcome(change: Plan, backup: Path | None, server: OurServer, *, undo: bool) -> None:
    """Say what was done, and what to do next."""
    host, file = change.target.host, short_path(str(change.target.file))
    if not change.changes:
        state = "not connected" if undo else "connected already"
        terminal.show_text(f"{host.title} is {state}: {file}.")
        return
    done = f"disconnected: {file} {_restored(change)}" if undo else f"connected: {file}"
    terminal.show_text(f"{host.title} is {done}.")
    if backup:
        terminal.note(f"The backup is {short_path(str(backup))}.")
    for note in notes(change, server, undo=undo):
        terminal.note(note)


def notes(change: Plan, server: OurServer, *, undo: bool) -> list[str]:
    """Notes for the user after a change; empty if nothing changed."""
    target = change.target
    if not change.changes:
        return []
    if undo:
        kept = backup_of(target.file)
        stays = not change.is_exact and kept.exists()
        return [f"The previous file is kept as {short_path(str(kept))}."] if stays else []
    check = f"To see it, {target.host.check}. To undo it: {_undo(target)}"
    return [*_notes(target, server), check]


def _restored(change: Plan) -> str:
    """The state of a configuration after ``--undo``, as a part of a sentence."""
    if change.after is None:
        return "is removed, since there was none before"
    return "is as it was before" if change.is_exact else "has only lost the entry"


def _lines(change: Plan) -> Iterator[str]:
    name = short_path(str(change.target.file))
    before, after = (_text(data).splitlines() for data in (change.current, change.after))
    for line in difflib.unified_diff(before, after, name, name, n=_CONTEXT, lineterm=""):
        yield line.rstrip()


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8-sig")


def _notes(target: Target, server: OurServer) -> Iterator[str]:
    host = target.host
    runs_program = not server.url or host.remote is None
    if runs_program and _CACHES.intersection(Path(server.words[0]).parts):
        yield (
            "The program is in a cache that may be cleared: install it, for example with "
            "`uv tool install 'repertory[offline]'`, and connect again."
        )
    if writes_key(host, server):
        yield (
            f"The file has the key in plain text, since {host.title} cannot read it from the "
            "environment; keep the file private."
        )
    elif server.key and host.remote is None:
        yield "The key was not written: the program finds it in your own configuration."
    elif server.key:
        yield f"The key was not written: set {VARIABLE} where {host.title} starts."
    if target.scope is Scope.PROJECT and not server.url:
        yield "The entry has the program's path on this machine, which differs on others."


def _undo(target: Target) -> str:
    option = " --project" if target.scope is Scope.PROJECT else ""
    return f"repertory connect {target.host.id}{option} --undo"
