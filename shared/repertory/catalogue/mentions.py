"""The tools that a skill mentions: in its front matter, and in its text by exact identifiers.

Only the skill is read; ``search.linking`` looks up later whether the tool exists. Plain words do
not count as mentions, nor do names in calls or code blocks, because ``read_file(path)`` may be a
function of any program.
"""

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from repertory.catalogue import fences
from repertory.catalogue.item import Item, Kind
from repertory.catalogue.names import MARKS, UNSPACED
from repertory.catalogue.views import split_at_headings

MAX_MENTIONS = 100  # per skill
ALLOWED = "allowed-tools"
TOOLS = "tools"  # the same for agents and prompts, which may also have built-in tools of the host

_PREFIX = "mcp__"  # before the ids of MCP tools in some hosts
_RUN = re.compile(rf"[\w{MARKS}./:@*-]+")
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_SPAN = re.compile(r"`([^`\n]{1,200})`")
_ARGUMENTS = re.compile(r"\([^()]*\)")  # Bash(git add:*)
_ID = re.compile(rf"[^\W_][\w{MARKS}.-]{{0,200}}")
_SLASHED = re.compile(rf"([^\W\d_][\w{MARKS} -]{{0,100}})/([^\W\d_][\w{MARKS}.-]{{0,100}})")
_SEVERAL_WORDS = re.compile(r"[^\W\d_](?=[\w.-]{2,100}\Z)[^\W_]*(?:[_.-][^\W_]+)+")
_CAMEL = re.compile(r"[A-Za-z](?=\w{2,100}\Z)[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*")
_WORD = re.compile(r"[^\W_]+")


class Mention(msgspec.Struct, frozen=True, kw_only=True):
    """One mention of a tool; either its id or its name is known.

    Attributes:
        written: The mention as written in the skill.
        tool: The id of the tool, ``server__tool``; empty if only its name is mentioned.
        name: The name of the tool; empty if its id is mentioned.
        is_sure: Whether it can only mean a tool. If no tool has that id, the tool is missing.
    """

    written: str
    tool: str = ""
    name: str = ""
    is_sure: bool = False


def mentions(item: Item) -> list[Mention]:
    """The tools that a skill mentions, each once, in order, at most ``MAX_MENTIONS``.

    Empty for other kinds of items.
    """
    if item.kind is not Kind.SKILL:
        return []
    found: dict[tuple[str, str], Mention] = {}
    allowed = _allowed(item.extra.get(ALLOWED), is_sure=True)
    of_agent = _allowed(item.extra.get(TOOLS), is_sure=False)
    for mention in (*allowed, *of_agent, *_in_text(item.body)):
        found.setdefault((mention.tool, mention.name), mention)
    known = {one.tool.partition("__")[2] for one in found.values() if one.is_sure}
    return list(islice((one for one in found.values() if one.name not in known), MAX_MENTIONS))


def subject(item: Item) -> frozenset[str]:
    """The words of a skill's name, description and headings, in lower case."""
    texts = [item.name, item.description, *(one.title for one in split_at_headings(item.body))]
    return frozenset(_WORD.findall(" ".join(texts).lower()))


def is_about(words: frozenset[str], server: str) -> bool:
    """Whether the subject of a skill, as words, names a server.

    A mention of a tool by name alone counts only then, because other servers and programs also use
    names like ``get_health``.
    """
    named = _WORD.findall(server.lower())
    return bool(named) and words.issuperset(named)


def _allowed(value: object, *, is_sure: bool) -> Iterator[Mention]:
    """The allowed tools: a list, or a text separated by spaces or commas.

    Only in a list may the name of a server contain spaces.
    """
    parts = value if isinstance(value, list) else _without_arguments(value).split()
    for part in parts:
        for word in map(str.strip, _without_arguments(part).split(",")):
            if word:
                yield from _of_id(word, is_sure=is_sure)
                yield from _of_slashed(word, is_sure=is_sure)
                yield from _of_name(word)


def _without_arguments(value: object) -> str:
    return _ARGUMENTS.sub("", value) if isinstance(value, str) else ""


def _in_text(body: str) -> Iterator[Mention]:
    fence = ""
    for line in body.split("\n"):
        before, fence = fence, fences.after(fence, line, fences.MAX_INDENT)
        if not (before or fence):
            for span in _SPAN.finditer(line):
                yield from _of_slashed(span[1])
                yield from _of_name(span[1])
        if "__" in line:
            for run in _RUN.finditer(line):
                yield from _of_run(_plain(run[0]))


def _of_run(run: str) -> Iterator[Mention]:
    """The mentions in a run; in scripts without spaces, a run may include adjacent words."""
    parts = _UNSPACED.split(run)
    for part in parts:
        yield from _of_id(_plain(part))
    if len(parts) > 1:
        yield from (msgspec.structs.replace(one, is_sure=False) for one in _of_id(run))


def _plain(run: str) -> str:
    """A run of characters without emphasis marks and without final punctuation."""
    run = run.rstrip(".:")
    stars = len(run) - len(run.lstrip("*"))
    return run[stars:-stars] if stars and run.endswith("*" * stars) else run


def _of_id(word: str, *, is_sure: bool = False) -> Iterator[Mention]:
    """The mention in ``server__tool`` or ``mcp__server__tool``."""
    tool = word.removeprefix(_PREFIX)
    server, _, name = tool.partition("__")
    if server and name and _ID.fullmatch(tool):
        yield Mention(written=word, tool=tool, is_sure=is_sure or word != tool)


def _of_slashed(word: str, *, is_sure: bool = False) -> Iterator[Mention]:
    """The mention in ``server/tool``, which may also be a path if it is in a text."""
    if match := _SLASHED.fullmatch(word):
        yield Mention(written=word, tool=f"{match[1]}__{match[2]}", is_sure=is_sure)


def _of_name(word: str) -> Iterator[Mention]:
    """The mention in a name of several words: ``create_issue``, ``createIssue``."""
    if "__" not in word and (_SEVERAL_WORDS.fullmatch(word) or _CAMEL.fullmatch(word)):
        yield Mention(written=word, name=word)
