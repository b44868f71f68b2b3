"""The links between skills and the tools that they need, in both directions.

Both directions apply the same rule to the same mentions, so they always agree. Links are found by
look-ups of ids and of keys of the keyword index, never by a scan.
"""

from collections.abc import Mapping, Sequence

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.mentions import Mention, is_about, mentions, subject
from repertory.index.keywords.document import TOOL, TOOL_NAME
from repertory.index.keywords.index import KeywordIndex
from repertory.search.links import Links, Lookup
from repertory.search.lookup import unknown

MAX_NAMESAKES = 20  # tools of one name; if there are more, a name alone identifies none of them
MAX_SKILLS = 100  # skills listed for one tool
MAX_READ = 2_000  # skills that mention the tool or its name, and are checked


def links(index: KeywordIndex, item_id: str, seen: Lookup) -> Links:
    """The links of an item, among the items that a caller may see.

    Raises:
        UnknownItemError: There is no such item.
        StoreError: The items cannot be read now.
    """
    item = seen([item_id]).get(item_id)
    if item is None:
        raise unknown(index, item_id)
    if item.kind is Kind.SKILL:
        return _of_skill(index, item, seen)
    if item.kind is Kind.TOOL:
        return Links(needed_by=tuple(_needing(index, item, seen)))
    return Links()


def _of_skill(index: KeywordIndex, skill: Item, seen: Lookup) -> Links:
    found, words = mentions(skill), subject(skill)
    namesakes = {one.name: _namesakes(index, one.name) for one in found if one.name}
    ids = [one.tool for one in found if index.row_of(one.tool) is not None]
    ids += [one for several in namesakes.values() for one in several]
    items = seen(list(dict.fromkeys(ids)))
    needs: dict[str, None] = {}
    missing = []
    for mention in found:
        tool = _meant(mention, words, items, namesakes.get(mention.name, ()))
        if tool:
            needs[tool] = None
        elif mention.is_sure:
            missing.append(mention.written)
    return Links(needs=tuple(needs), missing=tuple(missing))


def _needing(index: KeywordIndex, tool: Item, seen: Lookup) -> list[str]:
    named = index.mentioning(TOOL_NAME + tool.name)
    namesakes = _namesakes(index, tool.name) if named else []
    rows = [*dict.fromkeys([*index.mentioning(TOOL + tool.id), *named])][:MAX_READ]
    items = seen(list(dict.fromkeys([tool.id, *namesakes])))
    needing: list[str] = []
    # Other servers may have a tool of this name, and many skills may mean that one.
    for start in range(0, len(rows), MAX_SKILLS):
        skills = seen([index.entry(row).id for row in rows[start : start + MAX_SKILLS]])
        for skill in skills.values():
            words = subject(skill)
            meant = [one for one in mentions(skill) if tool.id == one.tool or tool.name == one.name]
            if any(_meant(one, words, items, namesakes) == tool.id for one in meant):
                needing.append(skill.id)
        if len(needing) >= MAX_SKILLS:
            break
    return sorted(needing)[:MAX_SKILLS]


def _meant(
    mention: Mention, words: frozenset[str], items: Mapping[str, Item], namesakes: Sequence[str]
) -> str:
    """The id of the tool that a mention means; empty if none or ambiguous.

    ``words`` are the subject of the skill.
    """
    ids = [mention.tool] if mention.tool else namesakes
    tools = [items[one] for one in ids if one in items and items[one].kind is Kind.TOOL]
    if mention.name:
        tools = [one for one in tools if is_about(words, one.server)]
    return tools[0].id if len(tools) == 1 else ""


def _namesakes(index: KeywordIndex, name: str) -> list[str]:
    """The ids of the tools with a name; empty if there are too many."""
    entries = index.entries(index.names.exact(name))
    found = [one.id for one in entries if one.name == name and one.kind is Kind.TOOL]
    return found if len(found) <= MAX_NAMESAKES else []
