"""Inference if no item does a job directly, and its table."""

import msgspec
import pytest

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import Policy
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.tokens import terms, words
from repertory.index.vectors import Filter
from repertory.search.answer import Evidence, Hit
from repertory.search.capabilities import inferences, offered, read, table
from repertory.search.hits import hit
from repertory.search.inference import FIRST, GOOD_ENOUGH, infer
from repertory.search.query import Query
from tests.support.builders import tool
from tests.support.keyword_search import keyword_engine

SHELL = tool("term__run_command", "Execute a shell command and return its output.")
TOLD = tool("box__invoke", "Executes a command on this machine. Needs an approval.")
BROWSER = tool("web__browser_navigate", "Navigate to an address.")
SEARCH = tool("find__web_search", "Search the web.")
READ = tool("files__read_file", "Read the contents of a file.")
WRITE = tool("files__write_file", "Write text to a file.")
ALL = [SHELL, BROWSER, SEARCH, READ, WRITE]


def inferred(
    text: str,
    *items: Item,
    direct: tuple[Hit, ...] = (),
    unsure: dict[int, float] | None = None,
    **options: object,
) -> list[Hit]:
    """The inferred hits of a query; some rows were found directly with a confidence."""
    query = msgspec.convert({"text": text, **options}, Query)
    return infer(query, KeywordIndex.empty().updated((), items), list(direct), unsure or {})


def found(item: Item, confidence: float, *policy: str) -> Hit:
    """A direct hit."""
    index = KeywordIndex.empty().updated((), [item])
    evidence = Evidence(keyword=0.2, policy=policy)
    return hit(index.entries[0], confidence, "Keywords (some)", evidence)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("commit my changes", "shell → git operations"),
        ("undo the last commit", "shell → git operations"),
        ("list running containers", "shell → containers"),
        ("show me the logs of a pod", "shell → kubernetes"),
        ("install the dependencies", "shell → package installation"),
        ("run the unit tests", "shell → build and test"),
        ("kill the process on port 8080", "shell → process control"),
        ("how much disk space is left?", "shell → system information"),
        ("rename a file", "files → file operations"),
        ("unzip an archive", "shell → archives"),
        ("take a screenshot of a website", "browser → browser actions"),
        ("look up something online", "web search → web search"),
        ("send an email", "browser → mail"),
        ("check my inbox", "browser → mail"),
        ("dump the postgres database", "shell → data queries"),
        ("generate a random password", "shell → encoding and hashing"),
        ("ssh into the server", "shell → remote machines"),
        ("upload a file to s3", "shell → cloud command lines"),
    ],
)
def test_a_clear_request_has_a_capable_tool_first(text: str, why: str) -> None:
    """The reason names the capability and the kind of job."""
    first = inferred(text, *ALL)[0]
    assert first.reason == f"Capability inference ({why})"
    assert first.evidence.capability == why
    assert first.confidence < GOOD_ENOUGH


@pytest.mark.parametrize(
    "text", ["comit my changes", "commti my changes", "list running contaners", "unnzip an archive"]
)
def test_one_typo_in_the_word_that_asks_does_no_harm(text: str) -> None:
    """It is corrected by the words of the table, which the catalogue may not have."""
    assert inferred(text, SHELL)


@pytest.mark.parametrize(
    "text",
    [
        "commit to a healthier lifestyle",
        "opening hours of the bank branch",
        "write unit test questions for my pupils",
        "how to process grief",
        "buy a container of milk",
        "write a blog post about kubernetes",
        "file my taxes",
        "image of Mars",
        "build muscle",
        "what is the meaning of life",
        "improve the wording of my website so that more visitors buy something",
        "the is a",
        "42",
    ],
)
def test_nothing_is_inferred_from_a_word_in_passing(text: str) -> None:
    """A request for something else has no hits."""
    assert inferred(text, *ALL) == []


def test_less_likely_ways_are_less_sure() -> None:
    """A capability further down the list counts less, and so does one in a description alone."""
    mail = tool("post__send_email", "Send a message.")
    hits = inferred("read my emails", mail, BROWSER)
    assert [one.id for one in hits] == [mail.id, BROWSER.id]
    assert [one.confidence for one in hits] == [round(FIRST, 4), round(0.9 * FIRST, 4)]
    assert [one.id for one in inferred("commit my changes", TOLD, SHELL)] == [SHELL.id, TOLD.id]


def test_a_direct_hit_with_more_confidence_keeps_its_reason() -> None:
    """A weaker direct match of the same tool is raised and keeps its evidence."""
    strong, weak = found(READ, 0.495), found(SHELL, 0.4)
    assert inferred("commit my changes", *ALL, direct=(strong,))[0] == strong
    raised = inferred("commit my changes", *ALL, direct=(strong, weak))[1]
    assert raised.confidence == round(FIRST, 4)
    assert raised.evidence == Evidence(keyword=0.2, capability="shell → git operations")


def test_a_policy_outranks_inference() -> None:
    """An item that a policy moved is not raised, and a deprecated item is not offered."""
    moved = found(SHELL, 0.36, "Lowered by its policy (-1)")
    assert inferred("commit my changes", SHELL, direct=(moved,)) == [moved]
    old = msgspec.structs.replace(SHELL, policy=Policy(deprecated_by="new_shell"))
    assert inferred("commit my changes", old) == []


def test_a_policy_that_lowers_a_tool_lowers_it_here_too() -> None:
    """No policy gives an inference the confidence of a good direct match."""

    def sure(boost: float) -> float:
        item = msgspec.structs.replace(SHELL, policy=Policy(boost=boost))
        (first,) = inferred("commit my changes", item, threshold=0.0)
        return first.confidence

    assert sure(-1.0) < sure(-0.25) < sure(0.0) == sure(1.0) == FIRST
    assert not inferred(
        "commit my changes", msgspec.structs.replace(SHELL, policy=Policy(boost=-1))
    )


def test_of_tools_that_can_do_it_the_one_that_fits_best_is_first() -> None:
    """Even if its own confidence is below the threshold."""
    both = (READ, WRITE)
    for row in range(2):
        first = inferred("list the files of a folder", *both, unsure={row: 0.2})[0]
        assert first.name == both[row].name


def test_only_tools_are_offered_at_most_two_of_one_capability() -> None:
    """The best matches of the query are offered; a skill about shells cannot run a command."""
    skill = tool("box__shell", "How to use a shell.", kind=Kind.SKILL)
    shells = [tool(f"s{n}__run_command", "Execute a shell command.") for n in range(4)]
    git = tool("s9__run_command", "Execute a shell command, such as git.")
    hits = inferred("show the git status", skill, *shells, git, limit=5)
    assert [one.id for one in hits] == ["s9__run_command", "s0__run_command"]


def test_filters_threshold_and_limit_hold() -> None:
    """Inference follows them like any other hit."""
    other = tool("other__run_command", "Execute a shell command.")
    where = Filter(servers=("other",))
    assert [one.id for one in inferred("run tests", SHELL, other, where=where)] == [other.id]
    assert inferred("run tests", SHELL, threshold=GOOD_ENOUGH) == []
    assert len(inferred("run tests", SHELL, other, limit=1)) == 1


@pytest.mark.parametrize(
    ("capability", "name", "description", "server"),
    [
        ("shell", "bash", "Runs what it is given.", ""),
        ("shell", "start_process", "Start a process.", "desktop"),
        ("shell", "execute", "Run it.", "terminal"),
        ("web search", "search", "Searches the web for pages. Free.", ""),
        ("database", "query", "Run a read-only SQL query.", "postgres"),
        ("code", "execute", "Execute Python code in a sandbox.", ""),
    ],
)
def test_a_tool_is_known_by_its_name_its_server_or_first_sentence(
    capability: str, name: str, description: str, server: str
) -> None:
    """Any form of the words counts."""
    assert offered(capability, name, description, server) > 0


@pytest.mark.parametrize(
    ("capability", "name", "description"),
    [
        ("shell", "terminate_app", "Terminate an app."),  # "terminal" has the same stem
        ("shell", "exec_in_pod", "Execute a command in a pod."),
        ("shell", "read_file", "Read a file. Use this instead of a shell command."),
        ("git", "create_issue", "Create an issue in a GitHub repository."),
        ("browser", "browser_navigate_back", "Go back."),
    ],
)
def test_a_tool_that_only_mentions_a_capability_does_not_have_it(
    capability: str, name: str, description: str
) -> None:
    """A tool that has it for another purpose does not have it either."""
    assert offered(capability, name, description, "") == 0


def test_a_capability_is_offered_once_by_its_best_way() -> None:
    """The query may ask for several kinds of job."""
    ways = inferences("run an sql query on the sqlite database with a bash script")
    names = [one.capability for one in ways]
    assert len(names) == len(set(names))
    assert [one.way for one in ways] == sorted(one.way for one in ways)


def test_every_word_of_the_table_counts() -> None:
    """No word is a stop word, which would widen the meaning of its phrase."""
    lists = [one.words for one in table().capability.values()]
    lists += [one.words for one in table().intent]
    for phrase in {phrase for one in lists for phrase in one}:
        assert len(words(phrase)) >= len(phrase.split()), phrase
    for word in table().plain:
        assert terms(word), word


def test_every_capability_serves_and_every_intent_has_its_own_label() -> None:
    """No entry of the table is unused."""
    by = {name for intent in table().intent for name in intent.by}
    assert by == set(table().capability)
    labels = [intent.label for intent in table().intent]
    assert len(labels) == len(set(labels))


TABLE = """
plain = ["show"]
[capability.shell]
words = ["shell"]
[[intent]]
label = "git"
words = ["commit"]
by = ["shell"]
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('by = ["shell"]', 'by = ["shall"]'),
        ('by = ["shell"]', "by = []"),
        ('words = ["commit"]', "words = []"),
        ('words = ["shell"]', 'word = ["shell"]'),
    ],
)
def test_a_wrong_table_is_refused_as_it_is_read(right: str, wrong: str) -> None:
    """An unknown capability, an empty list, or a misspelt field."""
    assert read(TABLE).intent[0].by == ("shell",)
    with pytest.raises(msgspec.ValidationError):
        read(TABLE.replace(right, wrong))


def test_an_excluded_tool_is_not_inferred() -> None:
    """A search that leaves a tool out offers another one for the job."""
    engine, query = keyword_engine([SHELL, TOLD]), Query(text="commit my changes")
    assert engine.search(query).hits[0].id == SHELL.id
    assert SHELL.id not in [hit.id for hit in engine.search(query, exclude=[SHELL.id]).hits]
