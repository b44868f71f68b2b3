"""Policies are written in front matter or in a configuration, which takes precedence."""

from pathlib import Path

import msgspec
import pytest

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policies import Policies, rules
from repertory.catalogue.policy import MAX_AUTHOR_BOOST, Policy, Rule, apply_rules
from repertory.errors import ConfigurationError
from repertory.indexing.latest_scans import LatestScans
from repertory.indexing.scan import scan_source
from repertory.project.workspace import Workspace
from repertory.settings import load
from repertory.sources.configured import Catalogue
from repertory.sources.documents import Documents
from repertory.sources.markdown_skills import MarkdownSkills
from repertory.sources.python_skills import PythonSkills
from repertory.sources.reading.policy import authored
from repertory.sources.skill_folders import SkillFolders
from repertory.sources.source import Source
from tests.support.builders import write
from tests.support.scans import latest_scans

WHOLE = Policy(
    pin=("ship it",),
    boost=-0.5,
    aliases=("rollout", "go live"),
    deprecated_by="deploy-v2",
    when_not_to_use="Not for rollbacks.",
)


def item(name: str, policy: Policy | None = None) -> Item:
    """A skill with that name."""
    return Item(id=f"team/{name}", kind=Kind.SKILL, name=name, source="team", policy=policy)


def authored_policy(fields: dict[str, object]) -> tuple[Policy | None, list[str]]:
    """The policy in front matter, and the messages of its problems."""
    policy, problems = authored(fields, "SKILL.md")
    return policy, [problem.message for problem in problems]


def test_front_matter_may_set_all_five_fields_in_either_spelling() -> None:
    """They are lists at the top level, or text in `metadata`, where the format allows only text."""
    written = {
        "pin": ["ship it"],
        "boost": -0.5,
        "aliases": ["rollout", "go live"],
        "deprecated-by": "deploy-v2",
        "when-not-to-use": ["Not for rollbacks."],
    }
    metadata = {
        "pin": "ship it",
        "boost": "-0.5",
        "aliases": "rollout, go live",
        "deprecated_by": "deploy-v2",
        "when_not_to_use": "Not for rollbacks.",
    }
    assert authored_policy(written) == (WHOLE, [])
    assert authored_policy({"metadata": metadata}) == (WHOLE, [])


def test_front_matter_without_a_policy_has_none() -> None:
    """An item without a policy keeps the hash that it had before policies existed."""
    assert authored_policy({"name": "deploy", "metadata": {"version": "1"}}) == (None, [])
    assert authored_policy({"boost": 0, "aliases": []}) == (None, [])
    assert b"policy" not in msgspec.json.encode(item("deploy"))


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("boost", "high", "a number from -1 to 1"),
        ("boost", True, "a number from -1 to 1"),
        ("boost", float("nan"), "a number from -1 to 1"),
        ("pin", True, "a list of at most 20 phrases of 1 to 128 characters"),
        ("aliases", ["///"], "a list of at most 20 phrases of 1 to 128 characters"),
        ("aliases", ["a"] * 21, "a list of at most 20 phrases of 1 to 128 characters"),
        ("deprecated_by", {"id": "x"}, "a text of at most 2,000 characters"),
        ("when_not_to_use", "x" * 2001, "a text of at most 2,000 characters"),
    ],
)
def test_an_invalid_value_in_front_matter_is_reported_and_left_out(
    field: str, value: object, wanted: str
) -> None:
    """The rest of the policy is kept."""
    policy, messages = authored_policy({"aliases": ["rollout"], field: value})
    assert messages == [f"The `{field}` was left out; it must be {wanted}."]
    assert policy == (None if field == "aliases" else Policy(aliases=("rollout",)))


def test_an_author_may_raise_an_item_only_a_little() -> None:
    """A higher boost is reduced to the maximum for front matter, and reported."""
    policy, messages = authored_policy({"boost": 1})
    assert policy == Policy(boost=MAX_AUTHOR_BOOST)
    assert "only a [[policy]] of a configuration may give more" in messages[0]


def test_the_maximal_boost_of_a_found_configuration_applies_only_to_its_rules() -> None:
    """A user's boost stays unless the found rule sets a boost itself."""
    own = Rule(item="a", changes={"boost": 0.8}, place="own")
    found = Rule(item="a", changes={"aliases": ("b",)}, place="found", within="/project")
    assert apply_rules(None, [own, found]) == Policy(boost=0.8, aliases=("b",))
    found = Rule(item="a", changes={"boost": 0.9}, place="found", within="/project")
    assert apply_rules(None, [own, found]) == Policy(boost=MAX_AUTHOR_BOOST)


FRONT = (
    "---\nname: a\ntitle: a\ndescription: Does it.\naliases: [rollout]\nboost: x\n---\n\nText.\n"
)


@pytest.mark.parametrize(
    ("source", "place", "text"),
    [
        (SkillFolders, "a/SKILL.md", FRONT),
        (MarkdownSkills, "a.md", FRONT),
        (Documents, "a.md", FRONT),
        (PythonSkills, "a/skill.yaml", FRONT.split("---\n")[1]),
    ],
)
def test_every_source_with_front_matter_reads_policies(
    tmp_path: Path, source: type, place: str, text: str
) -> None:
    """Skills, manifests and documents do; the keys of policies are removed from `extra`."""
    write(tmp_path / place, text)
    built: Source = source(name="team", path=tmp_path)
    scan = built.scan()
    [found] = scan.items
    assert found.policy == Policy(aliases=("rollout",))
    assert "aliases" not in found.extra
    [problem] = scan.problems
    assert (problem.path, problem.item) == (str(tmp_path / place), found.id)
    assert problem.message == "The `boost` was left out; it must be a number from -1 to 1."


def test_later_rules_take_precedence_per_field_and_over_front_matter() -> None:
    """Rules match ids, names or patterns. An item without a rule stays the same object."""
    given = rules(
        [
            {"item": "team/*", "boost": 0.3, "aliases": ["all"]},
            {"item": "deploy", "boost": -1, "when_not_to_use": "Never\non  Fridays."},
            {"item": "team/deploy", "pin": ["ship it"], "aliases": []},
            {"item": "missing", "boost": 1},
        ],
        "repertory.toml",
    )
    other = Item(id="x/other", kind=Kind.TOOL, name="other", source="x")
    items = {one.id: one for one in (item("deploy", WHOLE), item("test"), other)}
    policies = Policies(given)
    applied = {one: policies.apply(each) for one, each in items.items()}
    items = {one: each.item for one, each in applied.items()}
    assert items["team/deploy"].policy == Policy(
        pin=("ship it",),
        boost=-1.0,
        deprecated_by="deploy-v2",
        when_not_to_use="Never on Fridays.",
        is_vouched=True,
    )
    assert items["team/test"].policy == Policy(boost=0.3, aliases=("all",))
    assert items["x/other"] is other
    assert [{*one.used} for one in applied.values()] == [{0, 1, 2}, {0}, set()]


def test_a_policy_matches_names_in_any_unicode_normalisation() -> None:
    """Folders copied from macOS have decomposed accents, which people do not type in patterns."""
    given = rules(
        [
            {"item": "team/r\u00e9sum\u00e9", "boost": 0.1},
            {"item": "re\u0301sume\u0301", "aliases": ["abstract"]},
            {"item": "*\u00e9sum?", "pin": ["ship it"]},
        ],
        "repertory.toml",
    )
    for name in ("re\u0301sume\u0301", "r\u00e9sum\u00e9"):
        found = Policies(given).apply(item(name)).item
        assert found.policy
        assert (found.policy.boost, found.policy.aliases) == (0.1, ("abstract",))
        assert found.policy.pin == ("ship it",)


def test_a_changed_policy_is_written_without_a_new_embedding() -> None:
    """It changes the metadata hash, but not the content hash."""
    plain, ruled = item("deploy"), item("deploy").under(WHOLE)
    assert plain.content_hash() == ruled.content_hash()
    assert plain.metadata_hash() != ruled.metadata_hash()
    assert plain.under(WHOLE) is plain.under(WHOLE)
    assert ruled.under(None).metadata_hash() == plain.metadata_hash()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"boost": 1}, "repertory.toml: `policy` is not a list of tables"),
        ([{"boost": 1}], "repertory.toml: [[policy]] 1 needs an `item`, not None"),
        (
            [{"item": "a"}, {"item": "b", "bost": 1}],
            "repertory.toml: [[policy]] 2 (b) has no key 'bost'; it has item, pin, boost, aliases,",
        ),
        (
            [{"item": "a", "boost": 2}],
            "repertory.toml: [[policy]] 1 (a): `boost` is 2; it must be a number from -1 to 1.",
        ),
        (
            [{"item": "a", "boost": True}],
            "repertory.toml: [[policy]] 1 (a): `boost` is true; it must be a number from -1 to 1.",
        ),
        (
            [{"item": "a", "pin": "ship it"}],
            "repertory.toml: [[policy]] 1 (a): `pin` is 'ship it'; it must be a list of at most 20",
        ),
        (
            [{"item": "a" * 1_001}],
            "repertory.toml: [[policy]] 1 names its `item` by more than 1,000",
        ),
        (
            [{"item": "[a-" * 21}],
            "repertory.toml: [[policy]] 1 names its `item` by more than 1,000",
        ),
        ([{"item": "a"}] * 1_001, "repertory.toml: there are 1,001 policies; 1,000 is the limit"),
    ],
)
def test_an_invalid_table_is_refused(tables: object, message: str) -> None:
    """The error names the file and the number of the table."""
    with pytest.raises(ConfigurationError) as refused:
        rules(tables, "repertory.toml")
    assert str(refused.value).startswith(message)


def test_rules_do_not_change_the_hash_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's rules come before the project's, and the collection stays the same."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "repertory.toml"
    sources = '[[sources]]\ntype = "skills"\npath = "s"\n'
    file.write_text(sources)
    bare = Workspace(load({}, tmp_path, {}), tmp_path).catalogue()
    user = tmp_path / "config" / "repertory" / "config.toml"
    write(user, '[[policy]]\nitem = "mine"\nboost = 0.1\n')
    file.write_text(sources + '[[policy]]\nitem = "deploy"\npin = ["ship it"]\n')
    ruled = Workspace(load({}, tmp_path, {}), tmp_path).catalogue()
    assert [rule.item for rule in ruled.rules] == ["mine", "deploy"]
    assert ruled.rules[1].place == f"{file}: [[policy]] 1"
    assert ruled.hash == bare.hash
    assert ruled != bare  # so that a watch service notices the change


def test_a_rule_without_an_item_is_reported_after_all_sources_were_read(tmp_path: Path) -> None:
    """Its item may belong to a source that was not scanned yet."""
    source = SkillFolders(name="team", path=tmp_path)
    rule = Rule(item="missing", changes={"boost": 1.0}, place="repertory.toml: [[policy]] 1")
    seen = [scan_source(source)]
    missing = Documents(name="docs", path=tmp_path)
    problems = latest_scans(Catalogue((source,), (), (rule,)), seen).problems
    assert [str(problem) for problem in problems] == [
        "repertory.toml: [[policy]] 1 is about 'missing', and no item has that id or name."
    ]
    assert latest_scans(Catalogue((source, missing), (), (rule,)), seen).problems == []


def test_a_missing_successor_is_reported(tmp_path: Path) -> None:
    """Neither an unknown name nor the item itself is a successor; a namesake elsewhere is."""
    for folder, name in (("a/deploy", "deploy"), ("b/deploy", "deploy")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Ship.\n---\n")
    sources = tuple(SkillFolders(name=name, path=tmp_path / name) for name in "ab")

    def problems_of(item: str, successor: str) -> list[str]:
        rule = Rule(item=item, changes={"deprecated_by": successor}, place="[[policy]] 1")
        scans = latest_scans(Catalogue(sources, (), (rule,)))
        return [problem.message for problem in scans.problems]

    assert problems_of("a/deploy", "deploy") == []
    assert problems_of("a/deploy", "b/deploy") == []
    for nowhere in ("ship", "a/deploy"):
        assert problems_of("a/deploy", nowhere) == [
            f"a/deploy is deprecated in favour of {nowhere!r}, and no other item has that id or "
            "name."
        ]


def test_saved_rules_are_active_without_another_scan(tmp_path: Path) -> None:
    """The latest scans stay valid if only policies change."""
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "SKILL.md").write_text("---\nname: deploy\ndescription: Ship.\n---\n")
    source, scans = SkillFolders(name="team", path=tmp_path), LatestScans({})
    scans.adopt(Catalogue((source,)))
    scans.add(scan_source(source))
    before = scans.items["team/deploy"].metadata_hash()
    rule = Rule(item="deploy", changes={"boost": 0.5}, place="repertory.toml: [[policy]] 1")
    scans.adopt(Catalogue((source,), (), (rule,)))
    assert scans.items["team/deploy"].policy == Policy(boost=0.5)
    assert not scans.may_offer("team/deploy", before)
    scans.adopt(Catalogue((source,)))
    assert scans.may_offer("team/deploy", before)
