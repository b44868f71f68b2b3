"""The tool ``get``: items as texts, whole or by section, up to the limit of one answer."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import msgspec
from mcp_types import CallToolResult

from repertory.backend import Backend
from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import set_fields
from repertory.catalogue.skill_format import SKILL_FILE
from repertory.catalogue.views import Section, plain_heading, split_at_headings
from repertory.errors import UsageError
from repertory.formats.linked import link_lines
from repertory.formats.skill_text import skill_text
from repertory.formats.uris import folder_of, uri_of
from repertory.functions.function import Function
from repertory.notices import about_text
from repertory.text import cut, normalized, one_line
from repertory_query.mcp.item_uris import item_at
from repertory_query.mcp.parameters import parameters, string
from repertory_query.mcp.tool import in_words

MAX_TEXT_LENGTH = 60_000  # characters of one answer, about 15,000 tokens
MAX_HEADINGS = 60  # listed in a message
MAX_FILES = 40  # supporting files listed in an answer


def text_of(item: Item) -> str:
    """The text of a skill or a document as in its file; the schema of a tool as JSON."""
    if item.kind is Kind.TOOL:
        return msgspec.json.encode(_tool(item)).decode()
    if item.kind is Kind.DOCUMENT:
        return item.body or item.description
    return skill_text(item)


def _get(backend: Backend, arguments: Mapping[str, Any]) -> CallToolResult:
    item = item_at(backend, arguments["id"])
    section = arguments.get("section", "")
    if section.strip():
        return in_words(_fitting(_section(item, section), item))
    links = backend.links(item.id)
    if item.kind is Kind.TOOL:
        whole = msgspec.json.encode(_tool(item, links.needed_by)).decode()
        return in_words(_fitting(whole, item))
    head = f"{item.kind.title()} {item.id}" + (f", file {item.path}" if item.path else "")
    heads = [one_line(head), *link_lines(links, backend.items), *_files(backend, item)]
    if notice := about_text(item, backend.stats().problems):
        heads.append(notice)
    return in_words("\n".join(heads) + f"\n\n{_fitting(text_of(item), item)}")


def _files(backend: Backend, item: Item) -> Iterator[str]:
    """A line with the paths of a skill's supporting files, and where they can be read."""
    if item.kind is not Kind.SKILL or not (found := backend.skill_files([item.id]).get(item.id)):
        return
    places = [one_line(file.place) for file in found.files if file.place != SKILL_FILE]
    if places:
        more = ["…"] if len(places) > MAX_FILES else []
        names = ", ".join([*places[:MAX_FILES], *more])
        yield f"Files beside it, as resources below {folder_of(item)}/: {names}"


def _tool(item: Item, needed_by: Sequence[str] = ()) -> dict[str, Any]:
    fields = {
        **item.extra,
        **set_fields(item.policy),
        "id": item.id,
        "name": item.name,
        "server": item.server,
        "description": item.description,
        "inputSchema": item.input_schema,
        "outputSchema": item.output_schema,
        "neededBy": needed_by,
    }
    return {name: value for name, value in fields.items() if value not in (None, "", (), [], {})}


class _Sections:
    """The sections of a text that have a heading.

    Attributes:
        titles: Their distinct titles, in the order of the text.
    """

    def __init__(self, body: str) -> None:
        self._all = [section for section in split_at_headings(body) if section.heading]
        self.titles = list(dict.fromkeys(section.title for section in self._all))
        self._above: list[str] = []  # the parent heading of each section; empty without one
        self._numbers: dict[str, list[int]] = {}
        outer: list[Section] = []
        for number, section in enumerate(self._all):
            while outer and _level(outer[-1]) >= _level(section):
                outer.pop()
            self._above.append(outer[-1].heading if outer else "")
            outer.append(section)
            self._numbers.setdefault(_key(section.title), []).append(number)

    def under(self, title: str) -> str:
        """The text under the headings with this title; empty if there is no such heading.

        The title may be truncated, as in answers. If several headings have it, each comes after
        its parent heading.
        """
        key = _key(title)
        numbers = self._numbers.get(key) or self._cut_to(key)
        parts: list[str] = []
        end = 0
        for number in numbers:
            if number >= end:  # not within the previous section
                end = self._end(number)
                parts += [self._above[number]] if len(numbers) > 1 else []
                parts += [_written(one) for one in self._all[number:end]]
        return "\n\n".join(filter(None, parts))

    def _cut_to(self, key: str) -> list[int]:
        """The numbers of the sections whose titles match a truncated key with an ellipsis."""
        begins = key.removesuffix("…")
        if begins in ("", key):
            return []
        found = (many for one, many in self._numbers.items() if one.startswith(begins))
        return sorted(chain.from_iterable(found))

    def readable(self) -> Iterator[str]:
        """The titles whose text fits one answer."""
        return (title for title in self.titles if len(self.under(title)) <= MAX_TEXT_LENGTH)

    def _end(self, number: int) -> int:
        """The number of the next section that is not below this one."""
        for other in range(number + 1, len(self._all)):
            if _level(self._all[other]) <= _level(self._all[number]):
                return other
        return len(self._all)


def _key(title: str) -> str:
    """A title on one line, without the marks of headings and links, case-folded and in NFC."""
    return normalized("NFC", plain_heading(one_line(title).lstrip("# "))).casefold()


def _section(item: Item, title: str) -> str:
    """The text under a heading, including its subsections."""
    sections = _Sections(item.body)
    if found := sections.under(title):
        return found
    there = _listed(sections.titles)
    raise UsageError(
        f"{item.id} has no section {title[:200]!r}; it has {there}."
        if there
        else f"{item.id} has no sections; ask for all of it."
    )


def _fitting(text: str, item: Item) -> str:
    """A text, cut to the limit of one answer if needed, with a note on how to read the rest."""
    if len(text) <= MAX_TEXT_LENGTH:
        return text
    titles = [*islice(_Sections(item.body).readable(), MAX_HEADINGS + 1)]
    sections = f" Ask for a section: {_listed(titles)}." if titles else ""
    return (
        f"{cut(text, MAX_TEXT_LENGTH)}\n\n[Cut after {MAX_TEXT_LENGTH:,} characters.{sections} "
        f"The resource {uri_of(item)} has all of it.]"
    )


def _listed(titles: Sequence[str]) -> str:
    shown = dict.fromkeys(cut(one_line(title), 100) for title in titles)
    more = ["…"] if len(shown) > MAX_HEADINGS else []
    return ", ".join([*map(repr, list(shown)[:MAX_HEADINGS]), *more])


def _level(section: Section) -> int:
    return len(section.heading) - len(section.heading.lstrip("#"))


def _written(section: Section) -> str:
    return f"{section.heading}\n\n{section.text}".rstrip()


GET = Function(
    name="get",
    title="Read an item",
    description="Read a skill or a document, before you follow it, or a tool's schema.",
    parameters=parameters(
        {
            "id": {"type": "string"},
            "section": string("Only what this heading holds."),
        },
        "id",
    ),
    action="read",
    subject="id",
    run=_get,
)
