"""A small MCP server over stdio that stores a team's notes in memory.

Servers start in the folder of their configuration, so ``.mcp.json`` names this file relative
to itself.
"""

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

server = MCPServer("notes", instructions="Notes that the whole team shares.")

READS = ToolAnnotations(read_only_hint=True)
ADDS = ToolAnnotations(destructive_hint=False)
DELETES = ToolAnnotations(destructive_hint=True)

Tags = Annotated[list[str], Field(description="Words to file the note under.")]
Limit = Annotated[int, Field(ge=1, le=100, description="The most notes to return.")]
NoteId = Annotated[int, Field(ge=1, description="The number that add_note returned.")]


@dataclass
class Note:
    """One note."""

    id: int
    text: str
    tags: list[str]
    pinned: bool = False
    written: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


notes: dict[int, Note] = {}
numbers = itertools.count(1)


@server.tool(annotations=ADDS)
def add_note(
    text: Annotated[str, Field(min_length=1, description="What to remember.")],
    tags: Tags | None = None,
) -> Note:
    """Write down a note so that the whole team can find it again, and return it with its number."""
    note = Note(id=next(numbers), text=text, tags=tags or [])
    notes[note.id] = note
    return note


@server.tool(annotations=READS)
def search_notes(
    query: Annotated[str, Field(min_length=1, description="Words that the note must hold.")],
    limit: Limit = 10,
) -> list[Note]:
    """Find the team's notes that hold all the words of a query, newest first."""
    words = query.casefold().split()
    found = [
        note
        for note in notes.values()
        if all(word in f"{note.text} {' '.join(note.tags)}".casefold() for word in words)
    ]
    return found[::-1][:limit]


@server.tool(annotations=READS)
def list_notes(
    tag: Annotated[str, Field(description="Only notes filed under this; empty lists all.")] = "",
    limit: Limit = 20,
) -> list[Note]:
    """List the team's notes, pinned ones first and then the newest."""
    found = [note for note in notes.values() if not tag or tag in note.tags]
    return sorted(found, key=lambda note: (note.pinned, note.id), reverse=True)[:limit]


@server.tool(annotations=ADDS)
def pin_note(note_id: NoteId, *, pinned: bool = True) -> Note:
    """Pin a note to the top of the list, or unpin it."""
    note = _known(note_id)
    note.pinned = pinned
    return note


@server.tool(annotations=DELETES)
def forget_note(note_id: NoteId) -> str:
    """Delete a note for good."""
    del notes[_known(note_id).id]
    return f"Note {note_id} is gone."


def _known(note_id: int) -> Note:
    if note_id not in notes:
        raise ToolError(f"There is no note {note_id}; list_notes shows those there are.")
    return notes[note_id]


if __name__ == "__main__":
    server.run()
