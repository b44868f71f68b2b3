"""``repertory hook``."""

import math
import os
import sys
import threading
from typing import Annotated, Any

import msgspec
import typer

from repertory.backend import Backend
from repertory.errors import RepertoryError, UsageError
from repertory.formats.hook import hook as hook_output
from repertory.formats.phrases import nothing
from repertory.formats.tools import whole_tools
from repertory.search.query import Query, query_of
from repertory.text import with_whole_characters
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.logs import is_verbose
from repertory_admin.options import ASKING, STORE, Flags
from repertory_admin.target import target_of

MAX_INPUT_SIZE = 10_000_000  # bytes
MAX_TIMEOUT_S = 3_600.0
MAX_PROMPT_LENGTH = 2_000  # characters, from the beginning


class Prompt(msgspec.Struct, frozen=True):
    """The input of a prompt hook. Other fields are ignored.

    Attributes:
        prompt: What the user typed.
        hook_event_name: ``UserPromptSubmit``, or ``BeforeAgent`` at Gemini CLI.
    """

    prompt: str
    hook_event_name: Annotated[str, msgspec.Meta(pattern="^[A-Za-z]{1,64}$")] = "UserPromptSubmit"


@command(
    app,
    "hook",
    settings=(*STORE, *ASKING),
    examples=(
        """echo '{"prompt": "rotate a leaked key"}' | repertory hook --verbose""",
        "",
        "In .claude/settings.json:",
        '{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": '
        '"repertory hook"}]}]}}',
    ),
)
def hook(
    flags: Flags,
    threshold: Annotated[
        float, typer.Option(metavar="NUMBER", help="The lowest confidence of an item, 0…1.")
    ] = 0.6,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", help="The maximum number of items.")
    ] = 3,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.0, max=MAX_TIMEOUT_S, help="Write nothing after this time."
        ),
    ] = 3.0,
) -> None:
    """Answer the prompt hook of an agent host, from its input.

    It reads the host's JSON from standard input, searches for the prompt, and writes the JSON that
    adds the results to the prompt. If nothing fits well enough, it writes nothing.

    With valid options, it never blocks or rejects a prompt: after --timeout, or after an error, it
    writes nothing and ends with exit code 0; --verbose says why. It asks the server of this
    directory, or else searches the index as it is. It indexes nothing and starts no server.
    """
    found: list[dict[str, Any]] = []

    def answer() -> None:
        try:
            found.append(_answer(flags, threshold, limit))
        except Exception as error:  # the boundary: an error must not block the prompt
            if is_verbose():
                kind = "" if isinstance(error, RepertoryError) else f"{type(error).__name__}: "
                terminal.warn(f"{kind}{error}")

    if math.isnan(timeout):  # NaN passes the check of the range
        raise UsageError("--timeout is not a number; give seconds.")
    terminal.be_quiet(quiet=not is_verbose())
    # A thread, because only this limits reading, searching and loading a model together.
    answering = threading.Thread(target=answer, name="hook", daemon=True)
    answering.start()
    answering.join(timeout)
    if found and found[0]:
        terminal.show_json(found[0])
    if answering.is_alive():
        if is_verbose():
            terminal.warn(f"nothing was found within {timeout:g} seconds")
        sys.stdout.flush()
        os._exit(0)  # other threads may hang, too


def _answer(flags: Flags, threshold: float, limit: int) -> dict[str, Any]:
    """The JSON to write; empty for nothing.

    Raises:
        RepertoryError: It cannot be answered.
    """
    try:
        given = msgspec.json.decode(with_whole_characters(_input()), type=Prompt)
    except msgspec.MsgspecError as error:
        raise UsageError(
            f'The input is invalid for a prompt hook: {error}; give JSON like {{"prompt": "…"}}.'
        ) from error
    target = target_of(flags)
    text = given.prompt[:MAX_PROMPT_LENGTH]
    query = query_of(target.settings.values, text, threshold=threshold, limit=limit)
    if target.server:
        return _output(target.server, query, given.hook_event_name)
    with target.open_here() as repertory:
        repertory.require_index()  # a search would load, and even download, the model first
        return _output(repertory, query, given.hook_event_name)


def _input() -> bytes:
    """Standard input, read without its buffer: this thread could hold the buffer's lock at exit."""
    data = bytearray()
    while len(data) < MAX_INPUT_SIZE and (part := os.read(0, 1 << 16)):
        data += part
    return bytes(data)


def _output(backend: Backend, query: Query, event: str) -> dict[str, Any]:
    answer = backend.search(query)
    output = hook_output(answer, whole_tools([answer], backend.items), event)
    if not output and is_verbose():
        terminal.warn(nothing(answer))
    return output
