"""Bodies of items that are kept in a file."""

import os
from pathlib import Path

import pytest

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import Policy
from repertory.errors import StoreError
from repertory.sources import bodies
from repertory.sources.bodies import BodyFile
from repertory.sources.skill_folders import SkillFolders

LONG = "Each line of this text is written down." * 20


def skill(name: str, body: str) -> Item:
    """A skill with a body."""
    return Item(id=f"team/{name}", kind=Kind.SKILL, name=name, source="team", body=body)


def test_an_item_without_its_body_is_the_same_item(tmp_path: Path) -> None:
    """Its hashes are the same, under a policy as well, and it can be made whole."""
    file, item = BodyFile(tmp_path), skill("a", LONG)
    light = file.keep(item)
    assert light.body == ""
    assert light.whole() == item
    assert light.metadata_hash() == item.metadata_hash()
    assert light.content_hash() == item.content_hash()
    policy = Policy(boost=0.5)
    assert light.under(policy).body == ""
    assert light.under(policy).whole() == item.under(policy)
    assert light.under(policy).metadata_hash() == item.under(policy).metadata_hash()
    assert [*tmp_path.iterdir()] == []  # it has no name


def test_short_bodies_and_those_of_a_full_disk_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The item is returned as it is."""
    file, short, long = BodyFile(tmp_path), skill("a", "Short."), skill("b", LONG)
    assert file.keep(short) is short
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    assert file.keep(long) is long


def test_a_file_of_replaced_bodies_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The items stay the same objects, and read their bodies elsewhere."""
    monkeypatch.setattr(bodies, "SLACK", 10_000)
    file = BodyFile(tmp_path)
    item = file.keep(skill("a", LONG))
    assert file.compacted([item]) is file
    for _ in range(30):
        file.keep(skill("b", LONG))
    other = file.compacted([item])
    assert other is not file
    assert other.compacted([item]) is other
    assert item.whole().body == LONG


def test_a_body_that_cannot_be_read_is_no_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator waits as for a store."""
    item = BodyFile(tmp_path).keep(skill("a", LONG))
    monkeypatch.setattr(os, "pread", lambda *_: b"")
    with pytest.raises(StoreError, match="cannot be read"):
        item.whole()


def test_a_changed_body_is_noticed(tmp_path: Path) -> None:
    """Although all that is in memory is equal."""
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
