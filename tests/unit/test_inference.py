"""Inference offers general tools (a shell, a browser, a database) if no direct hit is good."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import Policy
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Filter
from repertory.search.answer import Evidence, Hit, shown_confidence
from repertory.search.capabilities import CAPABILITIES, JOBS, PLAIN, jobs
from repertory.search.hits import hit_on
from repertory.search.inference import (
    CONFIDENCE_STEP,
    DEFAULT_THRESHOLD,
    FIRST_CONFIDENCE,
    GOOD_ENOUGH,
    MAX_READ,
    MAX_TOOLS,
    Inference,
    with_inferred,
)
from repertory.search.query import Query
from tests.support.builders import skill, tool


def taking(item_id: str, *parameters: str, description: str = "") -> Item:
    """A tool with some parameters."""
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in parameters}}
    return tool(item_id, description, input_schema=schema)


SHELL = tool("term__run_command", "Execute a shell command and return its output.")
BROWSER = tool("web__browser_navigate", "Navigate to an address.")
QUERY = tool("postgres__query", "Run a read-only query.")
# Tools that are not shells, although their names, descriptions or parameters suggest one.
CRAWLER = taking(
    "spider__crawl_site",
    "url",
    description="Begins a crawl and asks for its state until that is terminal. Runs for minutes.",
)
WAITER = taking(
    "ci__await_job",
    "job_id",
    description="Waits until a job has a terminal status, then executes no further command.",
)
NO_SHELLS = (
    CRAWLER,
    WAITER,
    tool("ci__await_pipeline", "Returns once a pipeline of shell jobs is in a terminal state."),
    tool("box__invoke", "Executes a command on this machine in a bash shell."),
    tool("app__terminate_app", "Terminates an app."),
    tool("app__list_commands", "Lists the commands of the command line."),
    tool("term__read_output", "Reads the output of a terminal."),
    taking("k8s__exec_in_pod", "command", description="Executes a shell command in a pod."),
    taking("browser__run_script", "script", description="Runs a script in the page."),
    taking("ops__explain", "command", description="Explains what a shell command would do."),
    taking("terminal__explain", "command", description="Explains what a shell command would do."),
    tool("app__run_test", "Runs a test in a shell."),
    tool("++", "A shell."),
    tool("shell__++", "A shell."),
    tool("shell__it_is", "A shell."),
)


def inferred(
    text: str, *items: Item, direct: Sequence[Hit] = (), known: bool = True, **options: object
) -> list[Hit]:
    """The inferred hits of a query; with ``known`` false no whole item can be read."""
    query = msgspec.convert({"text": text, "limit": 10} | options, Query)
    index = KeywordIndex.empty().updated((), items)
    usual = [one for one in direct if one.confidence >= DEFAULT_THRESHOLD]
    sure, shown = [one.confidence for one in usual], ids(usual)
    inference = Inference(query, index, sure, shown)
    read = {*inference.needed_items()}
    whole = {item.id: item for item in items if item.id in read} if known else {}
    return inference.hits(whole)


def found(item: Item, confidence: float) -> Hit:
    """A direct hit."""
    entry = KeywordIndex.empty().updated((), [item]).entry(0)
    return hit_on(entry, confidence, "Keywords (some)", Evidence(keyword=0.2))


def ids(hits: Sequence[Hit]) -> list[str]:
    """The ids of some hits, in order."""
    return [one.id for one in hits]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("commit my changes to git", "shell → git operations"),
        ("undo the last commit", "shell → git operations"),
        ("merge two branches", "shell → git operations"),
        ("list running containers", "shell → containers"),
        ("show me the logs of a pod", "shell → containers"),
        ("kubernetes", "shell → containers"),
        ("kill the process on port 8080", "shell → processes"),
        ("how much disk space is left?", "shell → processes"),
        ("install the dependencies", "shell → packages and tests"),
        ("run the unit tests", "shell → packages and tests"),
        ("pytest", "shell → packages and tests"),
        ("find files containing specific text", "shell → file operations"),
        ("rename a file", "shell → file operations"),
        ("unzip an archive", "shell → file operations"),
        ("take a screenshot of a website", "browser → web pages"),
        ("database query", "database → data queries"),
        ("count the rows of a table in the database", "database → data queries"),
    ],
)
def test_a_plain_request_infers_a_capable_tool(text: str, why: str) -> None:
    """The reason of the first hit names the capability and the kind of job."""
    first, *_ = inferred(text, SHELL, BROWSER, QUERY, *NO_SHELLS)
    assert first.reason == f"Capability inference ({why})"
    assert first.evidence.capability == why
    assert first.confidence == FIRST_CONFIDENCE < GOOD_ENOUGH


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
        "remove image background",
        "write content for my page",
        "change my name",
        "test",
        "find change",
        "what is the meaning of life",
        "the is a",
        "42",
        "",
    ],
)
def test_nothing_is_inferred_if_a_request_only_mentions_a_word_of_a_job(text: str) -> None:
    """One word of a job, such as "commit" or "branch", is not enough to infer a tool."""
    assert inferred(text, SHELL, BROWSER, QUERY) == []


@pytest.mark.parametrize(
    "text",
    [
        *("kubernetes", "docker", "pytest", "commit my changes", "find files", "delete a file"),
        *("stage files before commit", "install npm packages", "list running docker containers"),
        "run the unit tests",
    ],
)
def test_one_word_does_not_make_a_tool_a_shell(text: str) -> None:
    """Words of a description, a verb, one parameter or the server's name alone are not enough."""
    direct = found(skill("gke-basics", "Kubernetes with docker and pytest"), 0.4)
    assert inferred(text, *NO_SHELLS, direct=[direct]) == []
    assert inferred(text, *NO_SHELLS) == []


@pytest.mark.parametrize(
    "item",
    [
        *(tool(f"any__{name}") for name in ("bash", "shell", "runCommand", "execute_command")),
        *(tool(f"any__{name}") for name in ("powershell", "run_in_terminal", "shell_exec")),
        tool("Shell__run", "Runs it."),
        taking("desktop__start_process", "command", "timeout"),
        taking("any__exec", "cmd"),
        taking("any__exec", "script"),
        taking("any__shell_session", "command"),
    ],
)
def test_a_shell_is_recognised_by_its_name_or_its_parameters(item: Item) -> None:
    """The server's name counts as a part of the tool's name."""
    assert ids(inferred("commit my changes", item)) == [item.id]


def test_parameters_count_only_if_the_item_can_be_read() -> None:
    """Names always count. A tool with a command parameter comes before one with only the name."""
    by_parameter = taking("desktop__start_process", "command")
    by_both = taking("zz__run_command", "command")
    items = (by_parameter, SHELL)
    assert ids(inferred("commit my changes", *items)) == [by_parameter.id, SHELL.id]
    assert ids(inferred("commit my changes", *items, known=False)) == [SHELL.id]
    assert ids(inferred("commit my changes", *items, by_both)) == [by_both.id, by_parameter.id]


def test_the_parameters_of_only_a_few_tools_are_read() -> None:
    """Tools that mention a parameter's word are read; if there are many, those with query words."""
    others = [taking(f"a{number:02}__start_engine", "speed") for number in range(MAX_READ)]
    last = taking("zz__start_process", "command")
    assert ids(inferred("commit my changes", *others, last)) == [last.id]
    talkers = [tool(f"b{number:02}__start_it", "A command") for number in range(MAX_READ)]
    assert ids(inferred("commit my changes", *talkers[1:], last)) == [last.id]
    last = replace(last, description="Start a command to commit changes.")
    assert ids(inferred("commit my changes", *talkers, last)) == [last.id]


def test_a_tool_with_the_words_of_the_query_leads_many_equal_tools() -> None:
    """Neither the number of equal tools nor their ids matter."""
    others = [tool(f"a{number:03}__run_command", "Runs it.") for number in range(3 * MAX_READ)]
    best = tool("zz__run_command", "Runs it to commit changes.")
    assert ids(inferred("commit my changes", *others, best))[0] == best.id


@pytest.mark.parametrize("schema", [None, {}, {"properties": {}}, {"type": "object"}])
def test_a_tool_without_parameters_is_judged_by_its_name(schema: dict[str, Any] | None) -> None:
    """An input schema may be missing, empty, or without properties."""
    items = [tool("a__run", "A command", input_schema=schema), tool("b__bash", input_schema=schema)]
    assert ids(inferred("commit my changes", *items)) == ["b__bash"]


def test_a_tool_of_a_shell_server_does_only_the_job_that_its_name_states() -> None:
    """The tool that runs any command comes before it."""
    cat, run = tool("Shell__cat", "Prints a file."), tool("Shell__run", "Run any shell command.")
    assert ids(inferred("read file contents", cat, run)) == [run.id, cat.id]
    assert ids(inferred("commit my changes to git", cat, run)) == [run.id]
    assert inferred("commit my changes to git", cat) == []


def test_the_example_of_the_contract_holds() -> None:
    """Two weak direct hits are followed by an inferred third."""
    items = [tool("commander__open_text"), tool("filesystem__get"), tool("Shell__cat")]
    direct = [found(items[0], 0.47), found(items[1], 0.41)]
    (third,) = inferred("read file contents", *items, direct=direct, limit=3)
    assert (third.id, third.confidence) == ("Shell__cat", 0.41)
    assert third.reason == "Capability inference (shell → file operations)"


def test_the_likeliest_capability_comes_first_with_at_most_two_tools_each() -> None:
    """Among equal tools, one whose description has words of the query comes first."""
    shells = [tool(f"s{number}__bash", "Runs it.") for number in range(3)]
    fitting = tool("s9__bash", "Runs it, for example to dump a database.")
    hits = inferred("dump the postgres database", *shells, fitting, QUERY, threshold=0.0)
    assert ids(hits) == [QUERY.id, fitting.id, "s0__bash"]
    sure = [round(FIRST_CONFIDENCE - place * CONFIDENCE_STEP, 4) for place in range(MAX_TOOLS + 1)]
    assert [one.confidence for one in hits] == sure


def test_only_tools_are_inferred() -> None:
    """A skill about shells is not inferred because it cannot run a command."""
    about = tool("box__shell", "How to use a shell.", kind=Kind.SKILL)
    assert ids(inferred("commit my changes", about, SHELL)) == [SHELL.id]


def test_filters_and_the_threshold_apply_to_inferred_hits() -> None:
    """Inferred hits are filtered like direct hits."""
    other = tool("other__run_command")
    where = Filter(servers=("other",))
    assert ids(inferred("run the tests", SHELL, other, where=where)) == [other.id]
    assert ids(inferred("run the tests", SHELL, threshold=FIRST_CONFIDENCE)) == [SHELL.id]
    assert inferred("run the tests", SHELL, threshold=FIRST_CONFIDENCE + 0.01) == []
    [weak] = inferred("run the tests", SHELL, direct=[found(QUERY, 0.3)], threshold=0.0)
    assert weak.confidence == FIRST_CONFIDENCE  # a hit that is usually hidden does not lower it


def test_policies_apply_to_inferred_hits() -> None:
    """A deprecated tool is not inferred, and a policy moves a tool down but not up."""

    def sure(**policy: Any) -> list[float]:  # noqa: ANN401 - fields of any type
        item = msgspec.structs.replace(SHELL, policy=Policy(**policy))
        return [one.confidence for one in inferred("commit my changes", item, threshold=0.0)]

    assert sure(deprecated_by="new_shell") == []
    assert sure(boost=-1.0) < sure(boost=-0.25) < sure() == sure(boost=1.0) == [FIRST_CONFIDENCE]
    low = msgspec.structs.replace(SHELL, policy=Policy(boost=-1.0))
    other = tool("zz__bash")
    assert ids(inferred("commit my changes", low, other, threshold=0.0)) == [other.id, low.id]


def test_a_duplicate_of_a_hit_is_not_inferred() -> None:
    """Ids that a hit lists as duplicates are left out, and the next tool is offered."""
    other = tool("box__bash", "Runs it.")
    index = KeywordIndex.empty().updated((), [SHELL, other])
    query = Query(text="commit my changes", limit=1)
    assert ids(Inference(query, index, [], [other.id]).hits({})) == [SHELL.id]


def test_nothing_is_inferred_if_a_direct_hit_is_good() -> None:
    """A good direct hit already does the job, wherever it is among the hits."""
    good, weak = found(QUERY, GOOD_ENOUGH), found(QUERY, GOOD_ENOUGH - 0.01)
    assert inferred("commit my changes", SHELL, direct=[good]) == []
    assert ids(inferred("commit my changes", SHELL, direct=[weak])) == [SHELL.id]
    # Hits of a task's steps are not sorted by confidence, so the good one need not be first.
    assert inferred("commit my changes", SHELL, direct=[weak, good]) == []


CATALOGUE = (SHELL, tool("box__bash"), QUERY, BROWSER, *NO_SHELLS)


@given(
    text=st.sampled_from(["commit my changes", "database query", "docker", "find files", "a poem"]),
    confidences=st.lists(st.floats(0.0, 1.0).map(shown_confidence), max_size=5),
    threshold=st.floats(0.0, 1.0),
    which=st.permutations(CATALOGUE),
)
def test_inferred_hits_follow_the_direct_hits_above_the_default_threshold(
    text: str, confidences: list[float], threshold: float, which: list[Item]
) -> None:
    """A limit or a threshold cuts the answer but does not change its order."""
    sure = sorted(confidences, reverse=True)
    direct = [found(item, value) for item, value in zip(which, sure, strict=False)]

    def answer(limit: int, threshold: float = 0.0) -> list[Hit]:
        hits = [one for one in direct if one.confidence >= threshold][:limit]
        more = inferred(text, *CATALOGUE, direct=direct, limit=limit, threshold=threshold)
        return with_inferred(hits, more)[:limit]

    whole = answer(20)
    values = [one.confidence for one in whole]
    assert values == sorted(values, reverse=True)
    assert len({*ids(whole)}) == len(whole)
    usual = [one for one in direct if one.confidence >= DEFAULT_THRESHOLD]
    assert whole[: len(usual)] == usual
    for one in whole[len(usual) :]:
        assert one.confidence < (GOOD_ENOUGH if one.evidence.capability else DEFAULT_THRESHOLD)
    assert answer(20, threshold) == [one for one in whole if one.confidence >= threshold]
    for limit in range(1, len(whole) + 1):
        assert answer(limit) == whole[:limit]


def test_the_tables_are_consistent() -> None:
    """Each capability serves a job, each job has a capability, and plain words ask for no job."""
    assert {name for job in JOBS for name in job.by} == CAPABILITIES.keys()
    assert all(job.words and job.alone.isdisjoint(PLAIN) for job in JOBS)
    assert not any(job.is_asked_by(PLAIN) for job in JOBS)


def test_the_job_with_most_words_of_the_query_comes_first() -> None:
    """A query matches a job only if most of its words belong to that job."""
    labels = [job.label for job in jobs("delete the git branch and its files")]
    assert labels == ["git operations"]
    both = jobs("stop, start, restart and kill the running pod process by memory")
    assert [job.label for job in both] == ["processes", "containers"]
    assert [job.label for job in jobs("read a file of the container")] == ["file operations"]
    assert jobs("read a file of the git repository in the container") == []


def test_numbers_and_single_letters_are_ignored() -> None:
    """They occur in queries for any job; unknown words of two letters still count."""
    assert [job.label for job in jobs("docker 4242 x")] == ["containers"]
    for query in ("docker ps", "k8s", "docker-compose", "docker-compose logs"):
        assert [job.label for job in jobs(query)] == ["containers"]
    assert jobs("docker zz") == []
