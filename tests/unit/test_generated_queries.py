"""Generated queries fit their kind, and name every item that answers them."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.names import compact_name
from repertory.catalogue.policy import Policy
from repertory.index.keywords.document import Entry, entry
from repertory_eval.generate import generate
from repertory_eval.labelled import LabelledQuery, evenly

VARIANTS = {"name", "upper", "spaced", "compact", "camel", "snake", "kebab"}
NAMES = st.one_of(
    st.lists(st.sampled_from(["read", "write", "file", "Files", "v2", "URL"]), max_size=4).flatmap(
        lambda words: st.sampled_from("_- ").map(lambda between: between.join(words))
    ),
    st.text(max_size=12),
)


def entry_of(
    name: str, description: str = "", place: int = 0, policy: Policy | None = None
) -> Entry:
    """The entry of a tool, whose id has its place as the number of its server."""
    return entry(
        Item(
            id=f"server{place}__{name}",
            kind=Kind.TOOL,
            name=name,
            description=description,
            source="tools",
            policy=policy,
        )
    )


def entries_of(names: Iterable[str], description: str = "") -> list[Entry]:
    """Entries of tools with these names, each of its own server."""
    return [entry_of(name, description, place) for place, name in enumerate(names)]


def queries_of(entries: list[Entry], kind: str) -> list[LabelledQuery]:
    """The generated queries of one kind."""
    return [query for query in generate(entries) if query.tags == (kind,)]


@settings(max_examples=60)
@given(st.lists(NAMES, max_size=12))
def test_each_query_is_of_its_kind(names: list[str]) -> None:
    """Variants have the name's letters and digits; prefixes and typos fit their definitions."""
    entries = entries_of(names)
    by_id = {one.id: one for one in entries}
    known = {one.id: {one.compact, compact_name(one.id)} - {""} for one in entries}
    different = {one.compact for one in entries} - {""}
    asked = set()
    for query in generate(entries):
        kind, _, item = query.id.partition(" ")
        one, typed = by_id[item], compact_name(query.text)
        assert query.tags == (kind,)
        assert (item, query.text) not in asked
        asked.add((item, query.text))
        if kind in VARIANTS:
            assert typed == one.compact
            assert set(query.grades) == {other for other in by_id if typed in known[other]}
        elif kind == "prefix":
            assert one.name.startswith(query.text)
            assert len(typed) >= 4
            assert typed != one.compact
            assert sum(name.startswith(typed) for name in different) <= 5
            assert item in query.grades
        else:
            assert kind == "typo"
            assert OSA.distance(typed, one.compact) == 1
            near = {o for o in by_id if any(OSA.distance(typed, name) <= 1 for name in known[o])}
            assert set(query.grades) == near
        assert item in query.grades


@settings(max_examples=20)
@given(st.lists(NAMES, max_size=8), st.integers(1, 4))
def test_generated_queries_are_deterministic(names: list[str], limit: int) -> None:
    """The order of the items does not matter, and no kind exceeds the limit."""
    entries = entries_of(names, "Sends what was written to the printer in the hall.")
    queries = generate(entries, limit)
    assert generate(entries[::-1], limit) == queries
    for kind in {query.tags for query in queries}:
        assert sum(query.tags == kind for query in queries) <= limit


def test_a_prefix_is_the_shortest_shared_by_few_names() -> None:
    """Six names begin with ``read_``, so one more letter is typed. A four-letter name has none."""
    entries = entries_of([f"read_{letter}x" for letter in "abcdef"] + ["read_az", "time"])
    texts = [query.text for query in queries_of(entries, "prefix")]
    assert texts == ["read_a", "read_b", "read_c", "read_d", "read_e", "read_f", "read_a"]


def test_each_spelling_of_a_name_is_asked_once() -> None:
    """There is also a typo, which differs by one edit."""
    queries = {query.tags[0]: query.text for query in generate([entry_of("read_fileURL")])}
    assert {kind: text for kind, text in queries.items() if kind in VARIANTS} == {
        "name": "read_fileURL",
        "upper": "READ_FILEURL",
        "spaced": "read file url",
        "compact": "readfileURL",
        "camel": "readFileUrl",
        "snake": "read_file_url",
        "kebab": "read-file-url",
    }
    assert OSA.distance(compact_name(queries["typo"]), "readfileurl") == 1


def test_items_with_an_alias_and_successors_are_right() -> None:
    """An alias counts as a name, and a successor answers for its deprecated item."""
    old = Policy(deprecated_by="put")
    entries = [
        entry_of("write_file", place=1, policy=old),
        entry_of("put", place=2),
        entry_of("save", place=3, policy=Policy(aliases=("Write file",))),
    ]
    right = {query.text: set(query.grades) for query in queries_of(entries, "name")}
    assert right == {
        "write_file": {"server1__write_file", "server2__put", "server3__save"},
        "put": {"server2__put"},
        "save": {"server3__save"},
    }


def test_tasks_are_asked_from_descriptions() -> None:
    """The first sentence becomes a task if it begins with a verb, and always a summary."""
    text = "Lists all the files of a folder, newest first. Slow on network drives."
    entries = [
        *entries_of(["list_files", "ls"], text),
        entry_of("guide", "A guide to writing better commit messages.", 2),
        entry_of("short", "Prints.", 3),
    ]
    tasks = queries_of(entries, "task")
    assert [query.text for query in tasks] == [
        "how do I list all the files of a folder, newest first"
    ] * 2
    assert [set(query.grades) for query in tasks] == [{"server0__list_files", "server1__ls"}] * 2

    summary, *_ = queries_of(entries, "summary")
    words = iter(text.partition(".")[0].split())
    assert len(summary.text.split()) == 7
    assert all(word in words for word in summary.text.split())  # in the order of the sentence
    assert {query.id for query in queries_of(entries, "summary")} == {
        *("summary server0__list_files", "summary server1__ls", "summary server2__guide"),
    }


def test_a_limited_choice_is_evenly_spread() -> None:
    """The limit is the number of chosen values. Fewer values are all chosen."""
    assert evenly(range(100), 4) == [0, 25, 50, 75]
    assert list(evenly(range(3), 4)) == [0, 1, 2]
    assert list(evenly(range(3), 0)) == [0, 1, 2]


def test_sections_are_asked_by_their_headings() -> None:
    """A query has the heading and first words of a long body's section.

    All items with it are right.
    """
    keys = "Every key is replaced after ninety days, or at once if it leaked."
    body = (
        f"# Keys\n\nToo short.\n\n## Rotating *keys*\n\n{keys} Then:\n\n```sh\nrotate --all\n```\n"
    )
    bodies = {
        "server0__a": body + "x" * 1_500,
        "server1__b": body + "y" * 1_500,
        "server2__c": body,  # a short body has no sections of its own
    }
    queries = generate(entries_of("abc"), bodies=bodies)
    asked = [query for query in queries if query.tags == ("section",)]
    assert [query.id for query in asked] == ["section server0__a", "section server1__b"]
    for query in asked:
        assert query.text == "Rotating *keys* Every key is replaced after ninety days or"
        assert set(query.grades) == {"server0__a", "server1__b"}
