"""Actions, such as create or delete, are recognised by the verbs of names and requests."""

import pytest

from repertory.catalogue.actions import agreement, kind_of, of_name, of_request, without_courtesy


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("create_note", "create"),
        ("createNote", "create"),
        ("linear-create-issue", "create"),
        ("list_pods", "list"),
        ("forget_note", "delete"),
        ("drop-database", "delete"),
        ("get_forecast", "read"),
        ("SEND_EMAIL", "send"),
        ("run_command", "run"),
        ("search_papers", "search"),
        ("update_cell", "update"),
        ("stop_instance", "stop"),
        ("merge_pull_request", "merge"),
        ("convert-pdf", "convert"),
        ("begin_session", "run"),
        ("activate_license", "update"),
        ("shut_valve", "stop"),
        ("void_cheque", "delete"),
        ("kill_process", "delete"),
        ("terminate_instance", "delete"),
        ("deactivate_card", "stop"),
        ("turn_on_lamp", "run"),
        ("switch_lamp_off", "stop"),
        ("set_up_project", "create"),
        ("restore_backup", "restore"),
        ("creating-videos", "create"),
    ],
)
def test_a_name_has_the_action_of_its_first_verb(name: str, action: str) -> None:
    """The verb is found in any spelling, and after a server's name."""
    assert action in of_name(name)


def test_the_first_verb_of_a_name_decides() -> None:
    """Later words of a name may be nouns that look like verbs."""
    assert of_name("delete_search") == of_name("delete")
    assert of_name("create_merge_request") == of_name("create")
    assert of_name("booking_list") == of_name("list")


@pytest.mark.parametrize("name", ["notes", "pdf-tables", "", "created", "4"])
def test_a_name_without_a_verb_has_no_action(name: str) -> None:
    """Only whole words count as verbs."""
    assert of_name(name) == frozenset()


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("write a note", "create"),
        ("please remove this note", "delete"),
        ("can you help me send a letter", "send"),
        ("how do I list all branches", "list"),
        ("get the weather", "read"),
        ("Could you get rid of it and delete it", "delete"),
        ("show me my notes", "read"),
        ("what is the way to rename a file", "update"),
        ("deleteNote", "delete"),
        ("set up a project", "create"),
        ("I want to get rid of a note", "delete"),
        ("turn the kitchen light off at night", "stop"),
        ("switch on the pump", "run"),
        ("please shut down the pump", "stop"),
        ("turn the pages on the desk into a file", "convert"),  # "on" is a preposition here
        ("get an operation scheduled", "create"),
        ("get an operation scheduled", "read"),
    ],
)
def test_a_request_asks_for_the_action_of_its_first_verb(text: str, action: str) -> None:
    """Introductory words before the verb, such as "please" or "can you", are skipped."""
    assert action in of_request(text)


def test_get_is_a_verb_only_at_the_beginning_of_a_request() -> None:
    """``get`` is the verb of ``get the file``, but not of ``how do I get to delete a file``."""
    assert of_request("get the file") == of_name("get")
    assert of_request("how do I get to delete a file") == of_name("delete")


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("find a tool to create a note", "create"),
        ("find a good tool that deletes notes", "delete"),
        ("I need a skill for merging notes", "merge"),
        ("show me how to rename a note", "rename"),
        ("what is the best way to rename a note", "rename"),
        ("which tool can stop the pump", "stop"),
        ("create a tool that deletes notes", "create"),
        ("write a skill for merging notes", "write"),
        ("show how many notes I have", "show"),
        ("find a tool", "find"),
        ("find a tool that", "find"),
    ],
)
def test_asking_for_a_tool_is_not_the_action(text: str, verb: str) -> None:
    """``find`` is the verb of "find a tool", but not of "find a tool to create a note"."""
    assert of_request(text) == of_name(verb)


def test_a_particle_decides_the_action_of_a_verb() -> None:
    """``turn on`` and ``turn off`` differ; without a particle, the verb means something else."""
    both = of_name("turn_on_lamp") | of_name("turn_off_lamp")
    assert of_name("turn_lamp_on_or_off") == both
    assert of_name("turn_on_lamp").isdisjoint(of_name("turn_off_lamp"))
    assert of_name("turn_csv_into_json") == of_name("convert")
    assert of_name("switch_branch") == frozenset()


def test_a_long_request_to_get_something_reads_it() -> None:
    """A participle at the end describes the object, so it adds no action."""
    assert of_request("get the list of all the notes created") == of_name("get")


@pytest.mark.parametrize(
    "text",
    [
        "kubernetes",
        "a note about my aunt",
        "the long and winding road to our house shall delete it",  # the tenth word
        "",
    ],
)
def test_a_request_without_a_verb_asks_for_no_action(text: str) -> None:
    """Only the first words are searched for a verb."""
    assert of_request(text) == frozenset()


def test_a_very_long_request_is_read_at_its_beginning() -> None:
    """The cost must not grow with the text."""
    assert of_request("x" * 32_000 + " delete it") == frozenset()
    assert of_request("delete " + "x" * 32_000) == of_name("delete")


@pytest.mark.parametrize(
    ("asked", "name", "expected"),
    [
        ("write a note", "create_note", 1),
        ("write a note", "update_note", 1),
        ("write a note", "forget_note", -1),
        ("write a note", "notes", 0),
        ("notes", "forget_note", -1),  # a deletion must be asked for
        ("notes", "create_note", 0),
        ("notes", "notes", 0),
        ("find a note", "search_notes", 1),
        ("look up a note", "get_note", 1),
        ("look up a note", "search_notes", 1),
        ("cancel the run", "stop_run", 1),
        ("cancel the run", "delete_run", 1),
        ("cancel the run", "start_run", -1),
        ("back up the hub", "restore_hub", -1),
        ("back up the hub", "create_hub_backup", 1),
        ("delete a video", "creating-videos", -1),
        ("execute a query", "run_query", 1),
        ("email the team", "send_message", 1),
    ],
)
def test_actions_agree_if_they_have_one_in_common(asked: str, name: str, expected: int) -> None:
    """A verb may belong to several classes; an unknown action neither agrees nor disagrees."""
    assert agreement(of_request(asked), of_name(name)) == expected


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("hi, payroll please", "payroll please"),
        ("hello there! can you run it. thank you so much!", "can you run it"),
        ("hey can you run it", "can you run it"),
        ("good morning, payroll; thanks", "payroll"),
        ("is there a tool for payroll?", "payroll?"),
        ("please, is there a tool for payroll?", "payroll?"),
        ("i need a good skill to write rfcs", "write rfcs"),
        ("do you have a skill about payroll", "payroll"),
        ("is there anything for payroll", "payroll"),
        ("do something about it", "do something about it"),
        ("a tool for deleting rows", "delete rows"),
        ("find a command that lists pods", "list pods"),
        ("hello world", "hello world"),
        ("they can see it", "they can see it"),
        ("say thanks", "say thanks"),
        ("create a skill for payroll", "create a skill for payroll"),
        ("new skill for payroll", "new skill for payroll"),
        ("search tools for payroll", "search tools for payroll"),
        ("a tool for me", "a tool for me"),
        ("hi, thanks", "thanks"),
        ("a payroll tool for teams", "a payroll tool for teams"),
    ],
)
def test_courtesy_is_removed_from_a_query(text: str, rest: str) -> None:
    """Greetings, thanks and words that ask for a tool are removed, unless nothing else is left."""
    assert without_courtesy(text) == rest


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("payroll skill", "skill"),
        ("the heap dump tool?", "tool"),
        ("agent skills", ""),
        ("new skill", ""),
        ("create a skill", ""),
        ("which tool", ""),
        ("skill", ""),
        ("", ""),
    ],
)
def test_a_query_may_end_with_the_wanted_kind(text: str, kind: str) -> None:
    """As the object of a verb, or in the plural, the word does not name the wanted kind."""
    assert kind_of(text) == kind
