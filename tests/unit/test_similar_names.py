"""Names that look like the query but mean something else."""

import pytest

from repertory.search.confidence import CORRECTED_IN_NAME, MISSPELT
from repertory.search.opposites import opposed
from repertory.search.query import Query
from repertory.search.similar_names import is_other
from tests.support.builders import skill, tool
from tests.support.keyword_search import keyword_engine


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("fire employee", "hire_employee"),
        ("get volume", "set_volume"),
        ("close valve", "open_valve"),
        ("reject invitation", "accept_invitation"),
        ("unban player", "ban_player"),
        ("uninstall skill", "installing_skills"),
        ("E501", "w501"),
        ("write a diary entry", "wipe_diary_entry"),
        ("remove folder", "move_folder"),
        ("switch on irrigation", "stop_irrigation"),
        ("set up an invoice", "send_invoice"),
        ("ceo advisor", "cfo_advisor"),
        ("解密文件", "加密文件"),  # each character is a word: decrypt, encrypt
        ("发送邮箱", "发送邮件"),
    ],
)
def test_a_name_with_another_word_is_not_a_misspelling(typed: str, name: str) -> None:
    """Such a name may still be a hit by other evidence, but with a lower confidence."""
    assert is_other(typed, name)
    hits = keyword_engine([tool(f"a__{name}")]).search(Query(text=typed, threshold=0)).hits
    for hit in hits:
        assert hit.confidence < MISSPELT - 0.1
        assert not hit.reason.startswith("Fuzzy")


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("publsh page", "publish_page"),  # not a word
        ("publish pages", "publish_page"),  # a form of the word
        ("big_search", "bing_search"),  # a word by chance: few misspell the first letter
        ("create new issue", "create_issue"),  # the name has no other word
        ("serach notes", "search_notes"),
        ("switch on irrigation", "start_irrigation"),  # a verb that does the same
        ("set up an invoice", "create_invoice"),
        ("create the nwe issue", "create_issue"),
        ("get usr", "get_user"),  # a known word that is longer or shorter by a letter
        ("加密一个文件", "加密文件"),  # the name has no other character
        ("파일삭재", "파일삭제"),  # a character is a syllable of several letters
        ("создать заметки", "создать_заметку"),
    ],
)
def test_a_misspelt_name_is_that_name(typed: str, name: str) -> None:
    """This holds even if the misspelling happens to be another word."""
    assert not is_other(typed, name)


@pytest.mark.parametrize(
    ("typed", "name", "is_opposed"),
    [
        ("turn off light", "turn_on_light", True),
        ("turn the kitchen light off", "turn_on_light", True),
        ("turn on the light", "turn_on_light", False),
        ("turn the light on or off", "turn_on_light", False),
        ("turn off light", "turn_light_on_or_off", False),
        ("check out guest", "check_in_guest", True),
        ("log out of the server", "server_login", True),
        ("login", "log_out", True),
        ("logout", "signin", False),
        ("log in to the server", "server_login", False),
        ("session timeout", "time_session", False),
        ("check the guest list in march", "check_guest", False),
        ("unban player", "ban_player", True),
        ("ban player", "unban_player", True),
        ("unban player", "banning-players", True),
        ("install a skill", "uninstalling-skills", True),
        ("install a skill", "installing-skills", False),
        ("disconnect from the network", "connect_network", True),
        ("csv from json", "csv_to_json", True),
        ("turn a csv into json", "csv_to_json", False),
        ("turn a pdf into markdown", "markdown_to_pdf", True),
        ("convert word documents to markdown", "markdown_to_pdf", True),
        ("convert it from pdf to markdown to html", "markdown_to_html", False),
        ("how to convert markdown", "convert_to_pdf", False),
        ("how to text a friend", "text_to_speech", False),
        ("do it", "undo_edit", False),  # too short to tell
        ("switch off the lamp", "turn_on_light", True),
        ("switch the lights on", "turn_light_off", True),
        ("please unban a player", "ban_player", True),
        ("find a tool to unban a player", "ban_player", True),
        ("remove duplicate rows", "deduplicate_rows", False),  # only a verb is reversed
        ("fix a bug in my program", "debug_program", False),
        ("read the disclosure of the closure", "closure_reading", False),
    ],
)
def test_opposites_are_recognised_by_particles_and_prefixes(
    typed: str, name: str, is_opposed: bool
) -> None:
    """``on`` and ``off`` are stop words, so nothing else in the ranking distinguishes them."""
    item = tool(f"a__{name}")
    index = keyword_engine([item]).keywords
    assert index
    assert opposed(typed, list(index.all())).tolist() == [is_opposed]


def test_a_misspelt_verb_does_not_match_its_opposite() -> None:
    """Another item has the correctly spelt word, which shows what was meant."""
    engine = keyword_engine([tool("a__cordon_node"), tool("a__uncordon_node")])
    first, second = engine.search(Query(text="uncordn node", threshold=0)).hits
    assert (first.name, second.name) == ("uncordon_node", "cordon_node")
    assert second.confidence <= CORRECTED_IN_NAME[1] < first.confidence


def test_an_opposite_is_never_a_certain_hit() -> None:
    """It ranks below the requested name, with a confidence of a corrected word at most."""
    engine = keyword_engine([tool("a__turn_on_light"), tool("a__turn_off_light")])
    first, second = engine.search(Query(text="turn off the light", threshold=0)).hits
    assert (first.name, second.name) == ("turn_off_light", "turn_on_light")
    assert second.confidence <= CORRECTED_IN_NAME[1] < first.confidence


def test_a_writing_tool_is_not_a_certain_hit_for_a_request_to_read() -> None:
    """Without the stop word ``get``, the query is one word, which ``set_volume`` also has."""
    items = [tool("a__set_volume"), tool("a__list_volumes"), skill("volume")]
    hits = keyword_engine(items).search(Query(text="get the volume", threshold=0)).hits
    assert {hit.name: hit.confidence > 0.6 for hit in hits} == {
        "volume": True,
        "list_volumes": True,
        "set_volume": False,
    }
