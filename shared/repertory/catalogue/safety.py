"""What a tool claims about its effects: tags from the annotations of its server.

Servers may be wrong or dishonest, so the tags only inform and break ties; they grant no permission.
"""

from collections.abc import Collection, Mapping

READ_ONLY = "read-only"
DESTRUCTIVE = "destructive"
CLAIMS = frozenset({READ_ONLY, DESTRUCTIVE})


def claims(annotations: object) -> tuple[str, ...]:
    """The tags for a tool's MCP annotations, an untrusted value.

    The tool changes nothing (``readOnlyHint``), or it may delete or overwrite (``destructiveHint``,
    which has no meaning for a tool that changes nothing). Only a JSON ``true`` counts; otherwise
    the effect is unknown.
    """
    if not isinstance(annotations, Mapping):
        return ()
    if annotations.get("readOnlyHint") is True:
        return (READ_ONLY,)
    return (DESTRUCTIVE,) if annotations.get("destructiveHint") is True else ()


def safety(tags: Collection[str]) -> int:
    """The sort key of a tool among ties, by its tags: 0 read-only, 1 unknown, 2 destructive."""
    if READ_ONLY in tags:
        return 0
    return 2 if DESTRUCTIVE in tags else 1
