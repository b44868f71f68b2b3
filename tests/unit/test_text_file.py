"""Long texts of items are kept in a file instead of in memory."""

import os
from pathlib import Path

import pytest

from repertory.catalogue.item import Item, Kind, Texts
from repertory.catalogue.policy import Policy
from repertory.errors import StoreError
from repertory.sources import text_file
from repertory.sources.skill_folders import SkillFolders
from repertory.sources.text_file import TextFile

LONG = "Each line of this text is written down." * 20


def skill(name: str, body: str) -> Item:
    """A skill with a body."""
    return Item(id=f"team/{name}", kind=Kind.SKILL, name=name, source="team", body=body)


def tool(name: str) -> Item:
    """A tool with both schemas."""
    schema = {"type": "object", "properties": {"z": {"default": 1.0}, "a": {"description": LONG}}}
    return Item(
        id=f"team__{name}",
        kind=Kind.TOOL,
        name=name,
        source="team",
        input_schema=schema,
        output_schema={"enum": [2**63, -(2**63), 0.1, None, "ü"]},
    )


@pytest.mark.parametrize("item", [skill("a", LONG), tool("a")])
def test_an_item_whose_texts_are_in_the_file_is_equal(tmp_path: Path, item: Item) -> None:
    """Its hashes are equal, also under a policy, and its texts can be restored."""
    file = TextFile(tmp_path)
    light = file.keep(item)
    assert light.texts == Texts("", None, None)
    assert light.whole() == item
    assert repr(light.whole()) == repr(item)  # the order of a schema's fields is part of it
    assert light.metadata_hash() == item.metadata_hash()
    assert light.content_hash() == item.content_hash()
    policy = Policy(boost=0.5)
    assert light.under(policy).texts == light.texts
    assert light.under(policy).whole() == item.under(policy)
    assert light.under(policy).metadata_hash() == item.under(policy).metadata_hash()
    assert [*tmp_path.iterdir()] == []  # the file has no name


def test_short_texts_stay_in_memory_as_do_all_if_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``keep`` returns the same item."""
    file, short, long = TextFile(tmp_path), skill("a", "Short."), skill("b", LONG)
    assert file.keep(short) is short
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    assert file.keep(long) is long


def test_a_file_with_many_obsolete_texts_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The items remain the same objects and read their texts from the new file."""
    monkeypatch.setattr(text_file, "SLACK", 10_000)
    file = TextFile(tmp_path)
    item = file.keep(skill("a", LONG))
    assert file.compacted([item]) is file
    for _ in range(30):
        file.keep(skill("b", LONG))
    other = file.compacted([item])
    assert other is not file
    assert other.compacted([item]) is other
    assert item.whole().body == LONG


def test_unreadable_texts_raise_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``StoreError`` makes the coordinator retry later; empty text would be indexed."""
    item = TextFile(tmp_path).keep(skill("a", LONG))
    monkeypatch.setattr(os, "pread", lambda *_: b"")
    with pytest.raises(StoreError, match="cannot be read"):
        item.whole()


def test_a_changed_body_is_noticed(tmp_path: Path) -> None:
    """The parts of the item that are in memory do not differ."""
    path = tmp_path / "skills/a/SKILL.md"
    path.parent.mkdir(parents=True)
    source = SkillFolders(name="team", path=tmp_path / "skills")
    source.disk = tmp_path
    front = "---\nname: a\ndescription: Does it.\n---\n"
    for number in range(3):
        text = f"{number} " * 200
        path.write_text(front + text)
        scan = source.scan()
        assert scan.items[0].body == ""
        assert scan.items[0].whole().body == text.strip()
