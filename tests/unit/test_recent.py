"""A process's recent searches, and its counts by caller for a bounded number of names."""

from repertory.search.answer import Answer, Mode
from repertory.system.logs import CALLER
from repertory_query.records.recent import MAX_NAMES, MAX_SEARCHES, OTHERS, RecentSearches


def note(recent: RecentSearches, query: str, who: str = "") -> None:
    """Note a search of a caller without hits."""
    token = CALLER.set(who)
    recent.note(Answer(query=query, hits=[], threshold=0.0, mode=Mode.HYBRID), 0.01)
    CALLER.reset(token)


def test_queries_typed_letter_by_letter_are_one_search() -> None:
    """A prefix is replaced by the longer query; the number of recent searches is limited."""
    recent = RecentSearches()
    for query in ("r", "rot", "rotate", "rotate k", "rotate", "notes"):
        note(recent, query)
    assert [search.query for search in recent.newest_first()] == ["notes", "rotate"]
    for number in range(2 * MAX_SEARCHES):
        note(recent, f"{number:04}")
    assert len(recent.newest_first()) == MAX_SEARCHES


def test_only_keys_have_names() -> None:
    """People and addresses are counted together: there may be any number, and they are private."""
    recent = RecentSearches()
    for who in ("key:ci", "key:ci", "user:anna", "user:ben", "address:192.0.2.1", "", "owner"):
        note(recent, "notes", who)
    assert recent.by_caller() == {"key:ci": 2, "people": 2, "anonymous": 2, "owner": 1}


def test_the_number_of_names_is_bounded() -> None:
    """Keys beyond the limit are counted together; known keys keep their own counts."""
    recent = RecentSearches()
    for number in [*range(MAX_NAMES + 5), 0]:
        note(recent, "notes", f"key:{number}")
    found = recent.by_caller()
    assert len(found) == MAX_NAMES + 1
    assert (found["key:0"], found[OTHERS]) == (2, 5)
