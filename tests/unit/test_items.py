"""Items, their hashes, and their embedded texts."""

import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind, item_key, point_id, point_parts
from repertory.catalogue.policy import Policy
from repertory.catalogue.views import LONG_BODY, MAX_SECTIONS, Section, split_at_headings

SKILL = Item(id="s/a", kind=Kind.SKILL, name="key-rotation", source="s", description="Rotate keys.")


def changed(**fields: object) -> Item:
    """The skill with some fields changed."""
    return msgspec.structs.replace(SKILL, **fields)


def test_the_content_hash_covers_the_embedded_texts() -> None:
    """A changed description changes the content hash; a changed tag or path does not."""
    assert changed(description="Else").content_hash() != SKILL.content_hash()
    assert changed(tags=("ops",), path="/elsewhere").content_hash() == SKILL.content_hash()


def test_the_metadata_hash_covers_every_field() -> None:
    """A change of any field changes the metadata hash."""
    others: dict[str, object] = {
        "id": "s/b",
        "kind": Kind.TOOL,
        "name": "n",
        "source": "t",
        "description": "d",
        "body": "b",
        "server": "v",
        "path": "p",
        "tags": ("x",),
        "input_schema": {},
        "output_schema": {},
        "extra": {"licence": "MIT"},
        "policy": Policy(boost=0.1),
    }
    assert list(others) == list(Item.__struct_fields__)
    for name, other in others.items():
        assert changed(**{name: other}).metadata_hash() != SKILL.metadata_hash(), name


@given(st.dictionaries(st.text(max_size=5), st.integers(-9, 9), max_size=5))
def test_hashes_do_not_depend_on_the_order_of_keys(extra: dict[str, int]) -> None:
    """Two items whose keys differ only in their order have the same hash."""
    turned = dict(reversed(extra.items()))
    assert changed(extra=extra).metadata_hash() == changed(extra=turned).metadata_hash()


def test_a_remembered_hash_is_not_part_of_an_item() -> None:
    """After its hashes were computed, an item compares, encodes and copies as before."""
    asked, fresh = changed(body="b"), changed(body="b")
    hashes = asked.metadata_hash(), asked.content_hash()
    assert hashes == (fresh.metadata_hash(), fresh.content_hash())
    assert asked == changed(body="b")
    assert msgspec.json.encode(asked) == msgspec.json.encode(changed(body="b"))
    assert pickle.loads(pickle.dumps(asked)) == asked
    assert msgspec.structs.replace(asked, body="c").metadata_hash() != hashes[0]


def test_an_item_is_embedded_by_server_name_and_description() -> None:
    """The embedded text of a tool contains nothing of its schema."""
    tool = changed(kind=Kind.TOOL, name="createIssue", server="github", input_schema={"x": 1})
    assert [view.text for view in tool.views()] == ["github, create issue: Rotate keys."]


def test_only_a_long_body_is_embedded_by_section() -> None:
    """A short body adds no embedded text; a long one adds its sections with their headings."""
    section = "## Rotating\n" + "Issue the new key, deploy it, then revoke the old one. " * 4
    assert len(changed(body=section).views()) == 1
    long = "\n".join(f"{section}\n### Deeper {n}\nText.\n" for n in range(20))
    assert len(long) > LONG_BODY
    views = changed(body=long).views()[1:]
    assert len(views) == MAX_SECTIONS
    assert [view.section for view in views] == list(range(MAX_SECTIONS))
    assert views[0].heading == "## Rotating"
    assert views[0].text.startswith("key rotation, Rotating: Issue the new key")


@pytest.mark.parametrize("heading", ["Related Skills", "**See also**", "When NOT to use this"])
def test_a_section_about_other_items_is_not_embedded(heading: str) -> None:
    """Its item would be found for what other items do."""
    own = "## Rotating\n" + "Issue the new key, deploy it, then revoke the old one. " * 40
    others = f"## {heading}\n- page-cro: write landing pages that convert visitors into customers"
    views = changed(body=f"{own}\n{others}\n{own}").views()
    assert [(view.section, view.heading) for view in views[1:]] == [
        (0, "## Rotating"),
        (1, "## Rotating"),
    ]


def test_comments_in_fenced_code_are_not_headings() -> None:
    """Attributes such as `{#one}` are not part of a heading."""
    body = "intro\n# One { #one }\n```sh\n# not one\n```\nrest\n## Two\nend"
    assert [section.heading for section in split_at_headings(body)] == ["", "# One", "## Two"]


@pytest.mark.parametrize(
    ("written", "heading"),
    [
        ("## [Core](#core)", "## Core"),
        ("## [5.2.1](https://example.com/v5.2.0...v5.2.1) (2026-01-02)", "## 5.2.1 (2026-01-02)"),
        ("# ![Logo](logo.png) Fast [one](a) [![CI](b)](c)", "# Logo Fast one"),
        ("# [![CI](a)](b)", "# CI"),
        ("## f(name, [dependencies])", "## f(name, [dependencies])"),
        ("## `app[method](path)`", "## `app[method](path)`"),
    ],
)
def test_a_heading_has_no_links(written: str, heading: str) -> None:
    """A link counts as its text, a picture as its alternative text; badges do not count."""
    assert split_at_headings(f"{written}\n\nText") == [Section(heading, "Text")]


@given(st.text(alphabet="#` ~\nab", max_size=200))
def test_splitting_loses_no_line(body: str) -> None:
    """Each line of a body is a heading or part of a section's text."""
    kept = sum(len(s.text.split()) + len(s.heading.split()) for s in split_at_headings(body))
    assert kept <= len(body.split())
    assert "".join(c for c in body if c in "ab") == "".join(
        c for s in split_at_headings(body) for c in s.heading + s.text if c in "ab"
    )


def test_point_ids_are_a_pure_function_of_item_and_section() -> None:
    """Ids of different points differ, and an id's parts can be read from it."""
    a, b = item_key("s/a"), item_key("s/b")
    points = [point_id(a), point_id(a, 0), point_id(a, 1), point_id(b)]
    assert len(set(points)) == 4
    parts = [(a, None), (a, 0), (a, 1), (b, None)]
    assert [point_parts(point) for point in points] == parts
    assert points[1].hex == f"{a:024x}00000001"
