"""Skills are linked to the tools that they need."""

from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.mentions import MAX_MENTIONS, mentions
from repertory.errors import UnknownItemError
from repertory.formats.linked import link_facts, link_lines
from repertory.index.keywords.index import KeywordIndex
from repertory.search.linking import MAX_SKILLS, links
from repertory.search.links import Links, Lookup
from tests.support.builders import skill, tool

TOOLS = [
    tool("github__create_issue", input_schema={"properties": {"title": {}}, "required": ["title"]}),
    tool("github__search_issues"),
    tool("sentry__search_issues"),
    tool("github__get-latest-release"),
    tool("files__read_file"),
    tool("files__search"),
    tool("slides__addSlide"),
    tool("build-tools__run.all"),
    tool("django__name"),
    tool("服务器__搜索文件"),
    tool("wörter__créer_note"),
    tool("e\u0301te\u0301__ajouter"),
]

# The text of a skill, or its ``allowed-tools`` after ">"; the needed tools; and the missing ones.
# The texts have the forms of real skills, and each was checked by hand.
SAMPLE: tuple[tuple[str, str, str], ...] = (
    ("Call mcp__github__create_issue.", "github__create_issue", ""),
    ("Call `mcp__github__create_issue`: it opens one.", "github__create_issue", ""),
    ("(mcp__github__create_issue)", "github__create_issue", ""),
    ("github__create_issue", "github__create_issue", ""),
    ("1. `github__create_issue` with a title", "github__create_issue", ""),
    ("Use `github/create_issue`.", "github__create_issue", ""),
    ("**github__create_issue**", "github__create_issue", ""),
    ("```\nmcp__github__create_issue(title)\n```", "github__create_issue", ""),
    ("# With GitHub\n\n`create_issue` opens it", "github__create_issue", ""),
    ("# GitHub\n\n`search_issues`", "github__search_issues", ""),
    ("# Sentry\n\n`search_issues`", "sentry__search_issues", ""),
    ("# GitHub releases\n\n`get-latest-release`", "github__get-latest-release", ""),
    ("# Slides\n\n`addSlide`", "slides__addSlide", ""),
    ("# The build tools\n\n`run.all`", "build-tools__run.all", ""),
    ("mcp__build-tools__run.all", "build-tools__run.all", ""),
    (">mcp__github__create_issue", "github__create_issue", ""),
    (">Read, mcp__files__read_file, Bash(git add:*)", "files__read_file", ""),
    (">Bash(git:*) files/search", "files__search", ""),
    (">github__create_issue,files/search", "github__create_issue files__search", ""),
    (">mcp__github__close_issue", "", "mcp__github__close_issue"),
    (">github/close_issue Read", "", "github/close_issue"),
    (">gitlab__create_issue", "", "gitlab__create_issue"),
    ("Ask mcp__jira__search first.", "", "mcp__jira__search"),
    # names in other scripts, and names between words of scripts without spaces
    ("请用mcp__github__create_issue来创建。", "github__create_issue", ""),
    ("github__create_issueを使う", "github__create_issue", ""),
    ("github__create_issue를 사용", "github__create_issue", ""),
    ("用mcp__jira__search来搜索", "", "mcp__jira__search"),
    ("服务器__搜索文件", "服务器__搜索文件", ""),
    ("`服务器/搜索文件`", "服务器__搜索文件", ""),
    (">mcp__服务器__搜索文件 Read", "服务器__搜索文件", ""),
    (">mcp__服务器__删除", "", "mcp__服务器__删除"),
    ("**wörter__créer_note**", "wörter__créer_note", ""),
    ("# Les wörter\n\n`créer_note`", "wörter__créer_note", ""),
    ("e\u0301te\u0301__ajouter, puis", "e\u0301te\u0301__ajouter", ""),
    # names whose server the skill does not name
    ("`create_issue` opens it", "", ""),
    ("# Files of GitHub\n\nSee `search_issues` of Sentry", "github__search_issues", ""),
    ("# GitHub and Sentry\n\n`search_issues`", "", ""),
    ("Trackers such as GitHub have issues.\n\n`create_issue`", "", ""),
    ("# Dart\n\n`get_health`", "", ""),
    # names that are not an exact identifier in backticks
    ("# GitHub\n\nUse create_issue here", "", ""),
    ("# GitHub\n\n`create_issue(title)`", "", ""),
    ("# GitHub\n\n`client.create_issue`", "", ""),
    ("# GitHub\n\n```python\n`create_issue`\n```", "", ""),
    (
        "# GitHub\n\n~~~~\n```\n`create_issue`\n~~~~\n`search_issues`",
        "github__search_issues",
        "",
    ),
    ("# GitHub\n\n- a\n    ```` sh\n    ```\n    `create_issue`\n    ````", "", ""),
    ("# GitHub\n\n`CREATE_ISSUE`", "", ""),
    ("# GitHub\n\n`create-issue`", "", ""),
    ("# GitHub\n\n`create issue`", "", ""),
    ("# Files\n\n`search` them", "", ""),
    ("# Files\n\nsearch, then read file", "", ""),
    # paths and code
    ("Edit files/search and src/search", "", ""),
    ("`./files/search`", "", ""),
    ("`files/search/all.md`", "", ""),
    ("`files/search.md`", "", ""),
    ("See https://files/search", "", ""),
    ("`and/or`, `files/other`", "", ""),
    ("Article.objects.filter(author__name='x')", "", ""),
    ("`__init__` and `__name__` of a module", "", ""),
    ("_github__create_issue_ and github__create_issue2", "", ""),
    ("mcp__github__*, mcp__github and mcp__", "", ""),
    ("files__search_all, xfiles__search", "", ""),
    # builtin tools of hosts
    (">Read Write WebFetch Bash(npm run test:*)", "", ""),
    (">mcp__github__* mcp__github", "", ""),
    ("mcp__sentry__search_issues, then `search_issues`\n# GitHub", "sentry__search_issues", ""),
)


def told(text: str) -> Item:
    """A skill with a text, or with ``allowed-tools``."""
    allowed = {"allowed-tools": text[1:]} if text.startswith(">") else {}
    return msgspec.structs.replace(skill("told", body="" if allowed else text), extra=allowed)


def indexed(items: Sequence[Item]) -> KeywordIndex:
    """The keyword index of some items."""
    return KeywordIndex.empty().updated((), items)


def visible_items(items: Sequence[Item]) -> Lookup:
    """The look-up of a caller who sees only some items."""
    known = {item.id: item for item in items}
    return lambda ids: {one: known[one] for one in ids if one in known}


@pytest.mark.parametrize(("text", "needs", "missing"), SAMPLE)
def test_a_skill_needs_exactly_the_tools_that_it_mentions(
    text: str, needs: str, missing: str
) -> None:
    """In more than 50 texts no link is wrong and no link is missing."""
    asked = told(text)
    items = [*TOOLS, asked, skill("other")]
    found = links(indexed(items), asked.id, visible_items(items))

    assert found == Links(needs=tuple(needs.split()), missing=tuple(missing.split()))


def test_the_sample_is_large_enough() -> None:
    """It has at least 50 texts, of which at least a third have links."""
    assert len(SAMPLE) >= 50
    assert sum(bool(needs or missing) for _, needs, missing in SAMPLE) >= len(SAMPLE) / 3


def test_allowed_tools_may_be_a_list() -> None:
    """Values that are not text are left out."""
    asked = msgspec.structs.replace(
        skill("told"), extra={"allowed-tools": ["mcp__files__search", 7, None, "Read"]}
    )
    assert [one.tool for one in mentions(asked)] == ["files__search"]
    listed = ["Azure MCP/documentation, files/search", "Bash(git add:*)"]
    asked = msgspec.structs.replace(asked, extra={"allowed-tools": listed})
    assert [one.tool for one in mentions(asked)] == ["Azure MCP__documentation", "files__search"]
    assert mentions(msgspec.structs.replace(asked, kind=Kind.DOCUMENT)) == []


@pytest.mark.parametrize(
    ("tools", "needs", "missing"),
    [
        ("Read, Grep, mcp__github__create_issue", ["github__create_issue"], []),
        (["edit/editFiles", "search/codebase", "files/search"], ["files__search"], []),
        ("mcp__github__close_issue", [], ["mcp__github__close_issue"]),
        ({"write": False}, [], []),
    ],
)
def test_the_tools_of_an_agent_are_mentions(
    tools: object, needs: list[str], missing: list[str]
) -> None:
    """The built-in tools of a host are not reported as missing."""
    asked = msgspec.structs.replace(skill("told"), extra={"tools": tools})
    items = [*TOOLS, asked]
    found = links(indexed(items), asked.id, visible_items(items))
    assert (list(found.needs), list(found.missing)) == (needs, missing)


def test_the_number_of_mentions_is_bounded() -> None:
    """Each tool counts once; of many, the first ones count."""
    many = " ".join(f"mcp__a__b{number}" for number in range(MAX_MENTIONS + 9))
    found = mentions(told(f"{many} {many}"))
    assert [one.tool for one in found] == [f"a__b{number}" for number in range(MAX_MENTIONS)]


def test_links_are_described_in_words() -> None:
    """A tool is shown with its parameters; authors' text cannot start a new line."""
    found = Links(needs=("github__create_issue", "x__y"), missing=("a__\nb",), needed_by=("t/s",))
    assert link_lines(found, visible_items(TOOLS)) == [
        "Needs github__create_issue(title), x__y.",
        "Needs a__ b, not in this catalogue.",
        "Needed by t/s.",
    ]
    assert link_lines(found, visible_items(TOOLS), "team/told")[1].startswith(
        "team/told needs a__ b"
    )
    assert link_lines(Links(), visible_items(TOOLS)) == []
    assert link_facts(found)["missing"] == "a__ b"
    assert link_facts(Links()) == {}


def test_an_unknown_or_hidden_item_has_no_links() -> None:
    """The error for a hidden item equals that for an unknown one."""
    index = indexed(TOOLS)
    for item_id in ("github__create_issue", "nothing"):
        with pytest.raises(UnknownItemError, match="There is no item"):
            links(index, item_id, visible_items([]))


PARTS = [
    *("mcp__a__do_it", "a__do_it", "`a/do_it`", "`do_it`", "mcp__b__do_it", "`b/do_it`"),
    *("a__search", "`search`", "`a/search`", "\n# A\n", "\n# B\n", "plain words", "`addIt`"),
    *("mcp__gone__x", "mcp__a__b__c", "b__c", "`a__b__c`"),
]
texts = st.lists(st.sampled_from(PARTS), max_size=5).map(" ".join)
bodies = st.tuples(st.booleans(), texts).map(lambda one: ">" * one[0] + one[1])
LAW_TOOLS = [
    tool(one)
    for one in ("a__do_it", "b__do_it", "a__search", "a__addIt", "mcp__a", "a__b__c", "b__c")
]


@settings(max_examples=60)
@given(
    st.lists(bodies, max_size=4),
    st.lists(st.sampled_from(LAW_TOOLS), unique_by=lambda one: one.id),
    st.data(),
)
def test_both_directions_agree(bodies: list[str], tools: list[Item], data: st.DataObject) -> None:
    """Items that a caller does not see are treated like items that do not exist."""
    skills = [
        msgspec.structs.replace(told(body), id=f"team/s{number}")
        for number, body in enumerate(bodies)
    ]
    items = [*skills, *tools]
    visible = [item for item in items if data.draw(st.booleans(), item.id)]
    index, without = indexed(items), indexed(visible)
    seen = visible_items(visible)
    found = {item.id: links(index, item.id, seen) for item in visible}

    needs = {(one, tool) for one in found for tool in found[one].needs}
    needed = {(one, tool) for tool in found for one in found[tool].needed_by}
    assert needs == needed
    assert {tool for _, tool in needs} <= {item.id for item in visible}
    assert found == {item.id: links(without, item.id, seen) for item in visible}


def test_skills_that_need_a_namesake_do_not_count_against_the_limit() -> None:
    """Many skills may mention a tool with the same name of another server."""
    others = [
        skill(f"a{number}", "", "# Sentry\n\n`search_issues`") for number in range(MAX_SKILLS + 50)
    ]
    asked = skill("zz", "", "# GitHub\n\n`search_issues`")
    items = {
        one.id: one
        for one in (*others, asked, tool("github__search_issues"), tool("sentry__search_issues"))
    }
    index = KeywordIndex.empty().updated((), items.values())

    def seen(ids: Sequence[str]) -> Mapping[str, Item]:
        return {one: items[one] for one in ids if one in items}

    assert links(index, "team/zz", seen).needs == ("github__search_issues",)
    assert links(index, "github__search_issues", seen).needed_by == ("team/zz",)
    assert len(links(index, "sentry__search_issues", seen).needed_by) == MAX_SKILLS


def test_the_cost_does_not_grow_with_the_catalogue() -> None:
    """A look-up reads only the linked items, in both directions."""
    asked = told("mcp__files__search")
    more = [skill(f"more-{number}", body="search files `read_file`") for number in range(300)]
    items = [*TOOLS, asked, *more, *(tool(f"s{number}__do_it") for number in range(300))]
    index, seen, read = indexed(items), visible_items(items), list[str]()

    def counted(ids: Sequence[str]) -> Mapping[str, Item]:
        read.extend(ids)
        return seen(ids)

    assert links(index, asked.id, counted).needs == ("files__search",)
    assert links(index, "files__search", counted).needed_by == (asked.id,)
    assert len(read) == 5  # each of the two items for each direction, and the tool itself


def test_mentions_are_not_searchable_words() -> None:
    """No word, completion or correction of a query matches them."""
    index = indexed([told(">mcp__zorblax__quuxly")])

    assert index.mentioning("@@zorblax__quuxly") == [0]
    for query in ("zorblax", "zorblax__quuxly", "@zorblax__quuxly", "@@zorblax__quuxly", "zorb"):
        assert not any(term.indexed for term in index.match(query).terms)
