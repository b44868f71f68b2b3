"""The keyword index finds the right items, and an updated index equals a newly built one."""

from collections import Counter
from itertools import combinations
from typing import Any
from unittest.mock import Mock
from zlib import crc32

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import Policy
from repertory.errors import StoreCorruptError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.names import MAX_COMPLETIONS
from repertory.index.keywords.packed import Strings
from repertory.index.keywords.snapshot import unpack
from repertory.index.keywords.tokens import term_of
from repertory.index.vectors import NO_FILTER, Filter
from tests.support.builders import tool
from tests.support.keyword_search import content, pack, row_of


def index_of(*items: Item) -> KeywordIndex:
    """An index of some items."""
    return KeywordIndex.empty().updated((), items)


def found(index: KeywordIndex, query: str, where: Filter = NO_FILTER) -> list[str]:
    """The names of the items that a query finds, best first."""
    rows = index.match(query).best(10, where)
    return [index.entry(row).name for row in rows]


FILES = [
    tool("srv__read_file", "Read the contents of a file"),
    tool("srv__write_file", "Write text to a file", tags=("disk",)),
    tool("srv__send_email", "Send a message to a recipient", source="mail", server="mail"),
    tool("srv__list_calendar_events", "Show the meetings of a day", kind=Kind.SKILL, server=""),
]


def test_a_name_counts_more_than_a_description() -> None:
    """An item with a word in its name comes before an item with it in its description."""
    index = index_of(
        tool("srv__other", "It will export things"), tool("srv__export", "Something else")
    )
    assert found(index, "export") == ["export", "other"]


def test_the_typed_form_of_a_word_is_looked_up_within_a_filter() -> None:
    """The limit counts only allowed items, even if many others contain the word and weigh more."""
    many = [tool(f"a__integrals_{number}", "x", server="a") for number in range(50)]
    index = index_of(*many, tool("b__other", "Of integrals", server="b"))
    matches = index.match("integrals")
    [row] = matches.of_forms(40, Filter(servers=("b",)))
    assert index.entry(row).name == "other"
    assert {index.entry(one).server for one in matches.of_forms(40)} == {"a"}


def test_a_word_that_is_split_is_also_looked_up_unsplit() -> None:
    """It is found even if many items contain its parts and weigh more."""
    many = [tool(f"a__long_run_{number}", "A long run") for number in range(50)]
    index = index_of(*many, tool("b__other", "With templates of @longrun/turtle"))
    matches = index.match("longrun")
    assert [term.stem for term in matches.terms] == ["long", "run"]
    assert {index.entry(row).name for row in matches.of_forms(40)} == {"other"}


def test_a_word_with_one_edit_is_corrected() -> None:
    """A misspelt word finds the items of the correct word."""
    assert found(index_of(*FILES), "recipeint")[0] == "send_email"


def test_a_misspelt_word_is_not_looked_up_in_bodies() -> None:
    """Bodies have too many words that differ by one letter; headings of bodies do not."""
    placed = [
        tool("srv__a", "Of recipients"),
        tool("srv__b", body="# Recipients\nOf some."),
        tool("srv__c", body="# Some\nOf recipients."),
    ]
    assert found(index_of(*placed), "recipients") == ["a", "b", "c"]
    assert found(index_of(*placed), "recipeints") == ["a", "b"]


def test_a_prefix_is_completed() -> None:
    """A prefix of a word finds the items of the whole word."""
    assert found(index_of(*FILES), "calenda")[0] == "list_calendar_events"


def test_parameters_are_searched() -> None:
    """A parameter's name and its description find the tool."""
    schema = {"type": "object", "properties": {"subscriptionId": {"description": "billing"}}}
    index = index_of(*FILES, tool("srv__charge", "Bills", input_schema=schema))
    assert found(index, "subscription") == ["charge"]
    assert found(index, "billing") == ["charge"]


def test_a_body_is_searched_but_counts_least() -> None:
    """A word of the body finds the item, after items that have it in their description."""
    index = index_of(tool("srv__a", body="how to rotate keys"), tool("srv__b", "rotate keys now"))
    assert found(index, "rotate keys") == ["b", "a"]


@pytest.mark.parametrize(
    ("where", "names"),
    [
        (Filter(kinds=("skill",)), ["list_calendar_events"]),
        (Filter(servers=("mail",)), ["send_email"]),
        (Filter(sources=("mail", "nowhere")), ["send_email"]),
        (Filter(tags=("disk",)), ["write_file"]),
        (Filter(tags=("disk",), servers=("mail",)), []),
    ],
)
def test_filters_limit_the_candidates(where: Filter, names: list[str]) -> None:
    """Only items that a filter allows are found."""
    assert found(index_of(*FILES), "file message meetings", where) == names


def test_a_score_is_relative_to_a_perfect_match() -> None:
    """Words that no item contains lower every score."""
    index = index_of(*FILES)
    rows = np.array([row_of(index, "srv__read_file")])
    alone = index.match("read file").scores(rows)[0]
    padded = index.match("read file zebra quantum").scores(rows)[0]
    assert 0.8 < alone <= 1.0
    assert padded < 0.6 * alone


def test_a_query_of_unknown_words_finds_nothing() -> None:
    """An empty index also finds nothing."""
    assert found(index_of(*FILES), "xylophone quux") == []
    assert found(KeywordIndex.empty(), "file") == []


def typed_terms(query: str, *items: Item) -> dict[str, tuple[set[str], set[str]]]:
    """The exact and the variant indexed terms of each word of a query."""
    index = index_of(*items)
    found: dict[str, tuple[set[str], set[str]]] = {}
    for term in index.match(query).terms:
        found[term.typed] = {*term.exact}, {*term.variants}
    return found


def test_two_words_match_one_joined_word_and_the_reverse() -> None:
    """``java script`` finds ``JavaScript``, and ``createissue`` finds ``create issue``."""
    site, issue = tool("srv__site", "Builds JavaScript"), tool("srv__create_issue")
    assert typed_terms("java script", site)["java"] == ({"java", "javascript"}, set())
    assert typed_terms("createIssue", issue)["create"] == ({"creat", "createissu"}, set())
    assert typed_terms("createissuenote", issue)["issue"] == ({"issu", "createissu"}, set())
    joined = tool("srv__x", "Uses createissue")
    assert typed_terms("createIssue", joined)["issue"] == ({"createissu"}, set())


def test_only_an_unknown_word_is_corrected() -> None:
    """A common English word is not corrected. A long unknown word is, even if an item has it."""
    near = tool("srv__x", "About mouses and zorblaxes")
    assert typed_terms("houses", near)["houses"] == (set(), set())
    both = tool("srv__y", "About zorblax and zorblay")
    exact, variants = typed_terms("zorblax", both)["zorblax"]
    assert (bool(exact), bool(variants)) == (True, True)


def test_the_shortest_completions_are_taken() -> None:
    """The number of completions is bounded."""
    names = " ".join(f"zorbla{'y' * number}" for number in range(30, 0, -1))
    _, variants = typed_terms("zorb", tool("srv__x", names))["zorb"]
    assert 0 < max(map(len, variants)) < 20


def test_words_of_another_script_may_have_a_lower_rarity() -> None:
    """This applies to pairs of an unspaced script and to words that no item contains."""
    index = index_of(tool("srv__x", "文件 файл"))
    assert [term.rarity for term in index.match("文件").terms] == [0.5]
    assert [term.rarity for term in index.match("файл").terms] == [1.0]
    assert [term.rarity for term in index.match("мост").terms] == [0.25]


def test_the_best_matches_are_returned_up_to_a_limit() -> None:
    """They are ordered by their whole score; a single very common word is still read."""
    crowd = [tool(f"srv__a{number}", "zorblax") for number in range(30)]
    best = [tool("srv__z1", "zorblax of quuxly"), tool("srv__zorblax_quuxly", "It")]
    index = index_of(*crowd, *best)
    rows = index.match("zorblax quuxly").best(2)
    assert [index.entry(row).name for row in rows] == ["zorblax_quuxly", "z1"]
    assert len(index.match("zorblax").best(5)) == 5


def test_a_word_that_exceeds_the_budget_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rarest word is always read; commoner words only score the items found by it."""
    monkeypatch.setattr("repertory.index.keywords.matches.BUDGET", 3)
    crowd = [tool(f"srv__a{number}", "zorblax") for number in range(9)]
    index = index_of(*crowd, tool("srv__b", "zorblax quuxly"), tool("srv__c", "quuxly"))
    assert len(index.match("zorblax").best(20)) == 10
    assert found(index, "zorblax quuxly") == ["b", "c"]


def test_filtered_out_items_do_not_use_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget of postings is spent only on items that the filter allows."""
    monkeypatch.setattr("repertory.index.keywords.matches.BUDGET", 5)
    crowd = [tool(f"large__a{number}", "zorblax quuxly") for number in range(9)]
    index = index_of(*crowd, tool("large__only", "vexnor"), tool("small__b", "zorblax"))
    rows = index.match("vexnor zorblax quuxly").best(20, Filter(servers=("small",)))
    assert [index.entry(row).name for row in rows] == ["b"]


def test_a_repeated_word_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work grows with the number of words of a query, not with its square."""
    read = Mock(wraps=term_of)
    monkeypatch.setattr("repertory.index.keywords.lexicon.term_of", read)
    index = index_of(tool("srv__a", "zorblax"))
    words = [f"w{number}" for number in range(50)]
    for text in ("0 " * 500, "0 1 " * 250, " ".join(f"and0 {word}" for word in words)):
        read.reset_mock()
        index.match(text)
        assert read.call_count <= 8 * len(text.split())


def test_a_very_long_run_of_letters_is_not_split() -> None:
    """It is longer than any indexed word, and splitting it would take long."""
    assert len(index_of().match("in" * 20).terms) < 3
    assert index_of().match("in" * 2_000).terms == []


def test_a_correction_counts_half() -> None:
    """An item with a similar word weighs about half as much as one with the typed word."""
    index = index_of(tool("srv__a", "About zorblaxe"), tool("srv__zorblaye", "Its name is near"))
    rows = np.array([row_of(index, "srv__a"), row_of(index, "srv__zorblaye")])
    exact, near = index.match("zorblaxe").weights(rows)[0]
    assert exact > 0.75
    assert 0.45 <= near <= 0.5


def test_a_long_description_is_shortened() -> None:
    """Entries keep one line of at most 400 characters."""
    (entry,) = index_of(tool("srv__a", "Two\nlines  of text. " * 100)).all()
    assert entry.description.startswith("Two lines of text. Two")
    assert len(entry.description) == 400


def test_a_title_that_is_not_text_is_not_indexed() -> None:
    """A source may give a title of any type, or no title."""
    odd = tool("srv__odd", "x", extra={"title": ["zorblax"]})
    index = index_of(*FILES, odd)
    assert [index.frequency(term) for term in ("none", "zorblax")] == [0, 0]


def test_parameters_are_indexed_to_a_limited_depth() -> None:
    """Parameters of four levels of objects or lists are indexed; a schema may have any shape."""

    def of(names: dict[str, object]) -> dict[str, object]:
        return {"properties": names}

    deep: dict[str, object] = {"vrendig": {}}
    for name in ("quuxly", "sprocket", "zorblax", "gadget"):
        deep = {name: of(deep)}
    listed: dict[str, object] = {"sleeve": {}}
    for name in ("hinge", "lever", "bolt", "rivet"):
        listed = {name: {"items": of(listed)}}
    index = index_of(*FILES, tool("srv__a", "x", input_schema=of(deep | listed | {"odd": True})))
    for word in (
        "gadget",
        "zorblax",
        "sprocket",
        "quuxly",
        "rivet",
        "bolt",
        "lever",
        "hinge",
        "odd",
    ):
        assert found(index, word) == ["a"], word
    assert found(index, "vrendig") == found(index, "sleeve") == []


def test_a_tools_claims_about_its_effects_are_not_searchable() -> None:
    """Tags such as read-only are not searchable words of a tool, but they are words of a skill."""
    tags = ("read-only", "zorblax")
    items = [tool("srv__a", "x", tags=tags), tool("srv__b", "x", tags=tags, kind=Kind.SKILL)]
    assert found(index_of(*items), "readonly") == ["b"]
    assert found(index_of(*items), "zorblax") == ["a", "b"]


def test_an_exact_word_of_a_body_comes_before_many_similar_names() -> None:
    """This holds even if there are more similar names than results."""
    crowd = [tool(f"srv__zorblaye_a{at}", "x") for at in range(40)]
    index = index_of(*crowd, tool("srv__z", body="Of zorblaxe."))
    rows = index.match("zorblaxe").best(1)
    assert [index.entry(row).name for row in rows] == ["z"]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    """This holds even if more items contain the common word than are returned."""
    crowd = [tool(f"srv__file_a{at}", "x") for at in range(40)]
    index = index_of(*crowd, tool("srv__z", body="Of zorblax."))
    rows = index.match("file zorblax").best(1)
    assert [index.entry(row).name for row in rows] == ["z"]


def test_nested_parameters_and_titles_are_searched() -> None:
    """Parameters of objects and of lists of objects are searched, and so is the title."""
    schema: dict[str, object] = {
        "properties": {
            "outer": {
                "properties": {"inner": {"type": "string"}},
                "items": {"properties": {"entry": {"type": "string"}}},
            }
        }
    }
    nested = tool("srv__a", "x", input_schema=schema, extra={"title": "Quuxly maker"})
    index = index_of(*FILES, nested)
    for word in ("outer", "inner", "entry", "quuxly"):
        assert found(index, word) == ["a"], word


def test_a_word_weighs_less_in_a_longer_text_and_more_if_repeated() -> None:
    """The weight stays within the range of its field."""
    texts = ["zorblax it", "zorblax it zorblax", f"zorblax it {'with more of others ' * 20}"]
    index = index_of(*(tool(f"srv__{number}", text) for number, text in enumerate(texts)))
    short, repeated, long = index.match("zorblax").weights(np.arange(3))[0]
    assert 0.75 < long < short < repeated < 0.9
    assert short > 0.8


def test_the_best_field_of_a_word_sets_its_weight() -> None:
    """Repetitions of the word in a lesser field, or the order of fields, do not matter."""
    schema: dict[str, object] = {"properties": {"zorblax": {}}}
    told = tool(
        "srv__e",
        input_schema={"properties": {"x": {"description": "zorblax"}}},
        body="# zorblax",
    )
    named = tool("srv__a", "zorblax", input_schema=schema, body="zorblax " * 50)
    aliased = tool("srv__b", policy=Policy(aliases=("zorblax",)))
    served = tool("zorblax__c", "x", input_schema=schema)
    headed = tool("srv__d", body="# zorblax\nzorblax " * 50)
    items = (named, aliased, served, headed, told)
    index = index_of(*items, tool("srv__LaTeX"))
    rows = np.array([row_of(index, item.id) for item in items])
    weights = index.match("zorblax").weights(rows)[0].tolist()
    ranges = [(0.75, 0.9), (0.9, 1.0), (0.67, 0.75), (0.67, 0.75), (0.67, 0.75)]
    for weight, (least, most) in zip(weights, ranges, strict=True):
        assert least - 1e-3 <= weight <= most + 1e-3
    assert found(index, "latex") == ["LaTeX"]


NAMES = st.sampled_from(["alpha beta", "beta gamma", "gamma_delta", "deltaAlpha", "epsilon"])
CHANGES = st.lists(
    st.tuples(st.integers(0, 6), NAMES, st.sampled_from(["", "one two", "two three beta"])),
    max_size=12,
)


@settings(max_examples=60)
@given(CHANGES)
def test_an_updated_index_equals_a_newly_built_one(
    changes: list[tuple[int, str, str]],
) -> None:
    """Any order of additions, replacements and removals results in the same content and matches."""
    index = KeywordIndex.empty()
    held: dict[str, Item] = {}
    for number, name, description in changes:
        item = tool(f"srv__{name}", description, id=f"item{number}")
        if item.id in held and held[item.id] == item:
            index = index.updated([item.id], ())
            del held[item.id]
        else:
            index = index.updated((), [item])
            held[item.id] = item
    built = index_of(*held.values())
    assert len(index) == len(built)
    if held:
        assert content(index) == content(built)
    for query in ("alpha", "alpah", "gam", "one two", "delta alpha epsilon", "b"):
        assert found(index, query) == found(built, query)
        close, others = (
            {one.entry(row).id: like for row, like in one.names.close(query).items()}
            for one in (index, built)
        )
        assert close == others
        terms, same = (
            [(term.exact, term.variants) for term in one.match(query).terms]
            for one in (index, built)
        )
        assert terms == same


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["ab", "abc é", "abcd", "b 文a"]))),
    st.sampled_from(["", "a", "ab", "=", "文", "z"]),
)
def test_a_prefix_finds_only_terms_of_items_that_are_not_removed(
    changes: list[tuple[int, str]], prefix: str
) -> None:
    """They are sorted by length in bytes, then by the text."""
    index = KeywordIndex.empty()
    for number, name in changes:
        index = index.updated((), [tool(name, f"{name}s", id=f"item{number}")])
    for part in index.parts:
        table = part.segment.postings.table
        left = [one for one in table.keys if one.startswith(prefix) and part.frequency(one)]
        found = [*part.beginning_with(prefix, table)]
        assert found == sorted(left, key=lambda one: (len(one.encode()), one))


def test_a_prefix_of_many_names_reads_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the number of names with the prefix nor the share of visible ones matters."""
    every = index_of(*(tool(f"{'ab'[n % 50 == 0]}__wizard_{n}_thing") for n in range(3_000)))
    read, reads = Strings._bytes, Mock()

    def noted(strings: Strings, place: int) -> bytes:
        reads(place)
        return read(strings, place)

    monkeypatch.setattr(Strings, "_bytes", noted)
    for index in (every, every.only(["b"])):
        [term] = index.match("wiza").terms
        assert len(term.variants) == 12
        assert len(index.names.close("wiza")) == min(MAX_COMPLETIONS, len(index))
        assert reads.call_count < 500
        reads.reset_mock()


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(Kind), st.booleans()), max_size=60),
    st.integers(0, 20),
    st.integers(0, 40),
    st.sampled_from(["", "item1", "item15", "item2!", "z"]),
    st.sampled_from([Filter(), Filter(kinds=("skill",)), Filter(sources=("a",), kinds=("tool",))]),
)
def test_a_page_is_a_slice_of_all_items_in_order(
    changes: list[tuple[int, Kind, bool]], limit: int, offset: int, after: str, where: Filter
) -> None:
    """The number of parts of the index and removed items do not matter."""
    index = KeywordIndex.empty()
    held: dict[str, Item] = {}
    for number, kind, is_removed in changes:
        item = tool(f"item{number}", kind=kind, source="ab"[number % 2])
        index = index.updated([item.id], () if is_removed else (item,))
        held.pop(item.id, None)
        held |= {} if is_removed else {item.id: item}
    rows = index.all_rows()
    every = sorted(one.id for one in index.entries(rows[index.allowed(rows, where)].tolist()))
    page, total = index.page(where, limit, offset, after)
    assert total == len(every)
    assert [one.id for one in page] == [one for one in every if one > after][offset:][:limit]
    counts, digest = index.contents()
    assert sum(counts.values(), Counter()) == Counter(one.source for one in held.values())
    assert digest == index_of(*held.values()).contents()[1]


def test_duplicates_do_not_count_against_the_limit() -> None:
    """They rank between better and weaker items, and only one of them counts."""
    better = [tool(f"srv__a{n}", "zebra " * (n + 2), source="a") for n in range(12)]
    copies = [
        tool("srv__copied", "zebra stripes", id=f"c{n}__copied", source="c") for n in range(60)
    ]
    weaker = [tool(f"srv__w{n}", f"zebra {'word ' * (n + 9)}", source="w") for n in range(12)]
    index = index_of(*better, *copies, *weaker)
    found = index.match("zebra").best(20).tolist()
    names = {entry.name for entry in index.entries(found)}
    assert len(names) == 20
    assert {item.name for item in better} < names


def test_duplicates_have_equal_scores() -> None:
    """Rounding does not depend on the row, so that ties can be broken by key."""
    text = "zebra heron otter quokka badger lemur gecko"
    index = index_of(*(tool("srv__a", text, id=f"c{n}", body="walrus lemur") for n in range(200)))
    for number in range(2, 8):
        for words in combinations([*text.split(), "walrus", "read"], number):
            scores = index.match(" ".join(words)).scores(index.all_rows())
            assert len({*scores.tolist()}) == 1


def test_words_of_removed_or_hidden_items_are_not_forms_of_a_word() -> None:
    """Only visible items of the index determine the forms of a typed word."""
    name = tool("a__custom", "Made to measure", source="a")
    other = tool("b__border", "The customs and their customers", source="b")
    both = index_of(name, other)
    [term] = both.match("customs").terms
    assert (term.forms, term.others) == (("=customs",), ("=customers",))
    for index in (both.updated([other.id], ()), both.only(["a"])):
        [term] = index.match("customs").terms
        assert (term.forms, term.others) == ((), ())


def test_the_digest_changes_only_with_the_texts_of_skills() -> None:
    """Texts of tools do not change it."""
    skill = tool("a", "Does a.", kind=Kind.SKILL)
    index = index_of(skill, tool("b", "Does b."))
    other = index.updated((), [tool("b", "Does c.")])
    changed = index.updated((), [msgspec.structs.replace(skill, description="Does d.")])
    assert index.contents()[1] == other.contents()[1] != changed.contents()[1]


def test_a_snapshot_is_restored_unchanged() -> None:
    """Packing and unpacking keeps all data, including the removed rows of a segment."""
    index = index_of(*FILES).updated(["srv__write_file"], [tool("srv__later", "It comes later")])
    restored, revision, position = unpack(*pack(index, 42, "7"))
    assert (revision, position) == (42, "7")
    assert pack(restored, 42, "7") == pack(index, 42, "7")
    assert {entry.id for entry in restored.all()} == {entry.id for entry in index.all()}
    assert found(restored, "recipeint")[0] == "send_email"
    assert found(restored, "write") == []


@pytest.mark.parametrize("damage", [b"", b"rubbish", None])
@pytest.mark.parametrize("part", ["head", "segment"])
def test_a_damaged_snapshot_is_refused(damage: bytes | None, part: str) -> None:
    """A truncated or overwritten snapshot is never partly read."""
    head, segments = pack(index_of(*FILES), 1)
    ((name, data),) = segments.items()
    if part == "head":
        head = head[: len(head) // 2] if damage is None else damage
    else:
        segments = {name: data[: len(data) // 2] if damage is None else damage}
    with pytest.raises(StoreCorruptError):
        unpack(head, segments)


def sealed(arrays: dict[str, Any]) -> bytes:
    """Arrays of a segment as a snapshot stores them, with their checksum."""
    packed: bytes = msgspec.msgpack.encode(arrays)
    return crc32(packed).to_bytes(4, "big") + packed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("postings.offsets", b"123"),  # not a whole number of integers
        ("postings.offsets", b""),
        ("postings.offsets", np.array([0, 10**9], np.int64).tobytes()),
        ("postings.rows", np.array([-1], np.int32).tobytes()),
        ("postings.rows", np.array([10**6], np.int32).tobytes() * 3),
        ("postings.weights", b""),
        ("postings.keys.text", b"term"),
        ("offsets", np.array([0], np.int64).tobytes()),
        ("entries", b""),
        ("keys", b""),
        ("names.rows", np.array([4], np.int32).tobytes()),
        ("names.offsets", np.array([0, 0, 2, 3, 4], np.int64).tobytes()),
        ("names.keys.offsets", np.array([5, 0], np.int64).tobytes()),
        ("names.keys.offsets", b""),
        ("tags.offsets", np.array([0, 9], np.int64).tobytes()),
        ("source.codes", np.array([7] * 4, np.int32).tobytes()),
        ("policies", np.array([4], np.int32).tobytes()),
        ("kind.text", None),
        ("duplicate_keys", b""),
    ],
)
def test_a_snapshot_that_contradicts_itself_is_refused(name: str, value: bytes | None) -> None:
    """A valid checksum does not prove that the arrays are consistent."""
    head, segments = pack(index_of(*FILES), 1)
    ((segment, data),) = segments.items()
    arrays = msgspec.msgpack.decode(data[4:])
    arrays[name][1] = value
    if value is None:
        del arrays[name]
    with pytest.raises(StoreCorruptError):
        unpack(head, {segment: sealed(arrays)})


@pytest.mark.parametrize("name", ["offsets", "keys", "postings.rows", "kind.codes", "kind.text"])
def test_a_snapshot_with_numbers_of_another_type_is_refused(name: str) -> None:
    """Otherwise searches would fail."""
    head, segments = pack(index_of(*FILES), 1)
    ((segment, data),) = segments.items()
    arrays = msgspec.msgpack.decode(data[4:])
    kind, content = arrays[name]
    if name == "keys":
        arrays[name][0] = "|S6"
    else:
        arrays[name] = ["<f8", np.frombuffer(content, kind).astype("<f8").tobytes()]
    with pytest.raises(StoreCorruptError):
        unpack(head, {segment: sealed(arrays)})


def test_searches_of_a_prepared_index_build_no_tables() -> None:
    """All tables are built by `prepare`."""
    index = index_of(*FILES)
    index.prepare()
    (segment,) = (part.segment for part in index.parts)
    parts = (index.policies, segment, segment.words, segment.names)
    before = [{*vars(part)} for part in parts]
    for query in ("read_file", "recipeint", "calenda", "文", "send a message to someone"):
        found(index, query, Filter(kinds=("tool",), tags=("disk",)))
        index.names.close(query)
        index.policies.successors_of([*index.policies.pinned(query), 0])
    assert [{*vars(part)} for part in parts] == before
