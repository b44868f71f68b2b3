"""Tasks are split into steps, and the results of the steps are merged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.search.explain import explain
from repertory.search.query import MAX_QUERY_LENGTH, Query
from repertory.search.steps import MAX_LENGTH, MAX_STEPS, merge, steps, texts_of_task
from tests.support.builders import tool
from tests.support.growth import grows_too_fast
from tests.support.keyword_search import keyword_engine

HAN = "\u753b\u4e00\u4e2a\u56fe\u8868"
FILE, CHART, MAIL = "read the file", "draw a chart", "mail the team"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Read the Excel file. Draw a bar chart.", ["Read the Excel file.", "Draw a bar chart."]),
        ("read the file, then draw a chart", [FILE, CHART]),
        ("read the file then draw a chart", [FILE, CHART]),
        ("read the file and then draw a chart", [FILE, CHART]),
        ("read the file; after that, draw a chart", ["read the file;", CHART]),
        ("read the file; draw a chart; mail the team", ["read the file;", "draw a chart;", MAIL]),
        ("First, read the file. Next, draw a chart", ["read the file.", CHART]),
        ("read the file, next, draw a chart, finally mail the team", [FILE, CHART, MAIL]),
        ("- read the file\n- draw a chart", [FILE, CHART]),
        ("* read the file\r\n\r\n* draw a chart", [FILE, CHART]),
        ("1. read the file\n2) draw a chart\n(3) mail the team", [FILE, CHART, MAIL]),
        ("1. read the file 2. draw a chart", [FILE, CHART]),
        ("Step 1: read the file\nStep 2: draw a chart", [FILE, CHART]),
        ("read the file\ndraw a chart", [FILE, CHART]),
        (
            "a chart of all sales\nthe email for the team",
            ["a chart of all sales", "the email for the team"],
        ),
        ("1. the sales chart 2. the team email", ["the sales chart", "the team email"]),
        ("the sales chart, then the team email", ["the sales chart", "the team email"]),
        (
            "import the FBX, generate LODs and bake the lightmaps",
            ["import the FBX", "generate LODs", "bake the lightmaps"],
        ),
        ("turn off the light, and lock the door", ["turn off the light", "lock the door"]),
        ("create a branch and push the commits", ["create a branch", "push the commits"]),
        ("Please read the file and draw a chart", ["Please read the file", CHART]),
        ("Can you read the file and draw a chart?", ["Can you read the file", f"{CHART}?"]),
        ("I'd like to read the file and draw a chart", ["I'd like to read the file", CHART]),
        ("Access the file. Draw a chart.", ["Access the file.", "Draw a chart."]),
        ("Compress the file and draw a chart", ["Compress the file", CHART]),
        ("read the file, sort it and draw a chart", ["read the file sort it", CHART]),
        (
            "read the file, draw a chart, and send it to the team",
            ["read the file", "draw a chart", "send it to the team"],
        ),
        (HAN + "\u3002" + HAN, [HAN + "\u3002", HAN]),
    ],
)
def test_a_task_is_split_into_its_steps(text: str, parts: list[str]) -> None:
    """Sentences, list items, lines and linking words start steps; marks and such words are cut."""
    assert steps(text) == parts
    assert texts_of_task(text) == [text, *parts]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kubernetes",
        "list open pull requests of our team",
        "read_file",
        "if the build fails then stop",
        "we added passkeys in May and have changed much code since then in the repository",
        "I sell baseball caps on the web. Can you make a picture of a golden retriever?",
        "Our CI is slow; find the tests that take the longest.",
        "Team lunch is on Friday; find a restaurant nearby.",
        "Summarize videos, e.g. talks or lessons. Requires Python and ffmpeg.",
        "analyzing training data. Supports many file formats.",
        "find emails from the boss, a client, and my manager",
        "search files, folders and links",
        "find and replace the text in a file",
        "please find and replace the text in a file",
        "I want to copy and paste the text",
        "search and rescue the crew",
        "take the picture and save it",
        "I want to grow my business. Can you draw a chart of it?",
        "I want to read the file, can you draw a chart?",
        "Page Dr. Miller of the ward",
        "Cancel the visit of Mrs. Smith on Friday",
        "Quote the rate of approx. three tonnes to St. Petersburg",
        "I need a chart. Draw it for the team.",
        "\u201cIt\u201d is the name of the film. Draw a chart of its sales.",
        "a script that reads a csv and prints the total",
    ],
)
def test_a_query_for_one_thing_is_not_split(text: str) -> None:
    """A sentence that only gives the context of a request is not a step."""
    assert steps(text) == [text]
    assert texts_of_task(text) == [text]


@pytest.mark.parametrize("verb", ["Do", "Get", "Let", "Use"])
def test_a_request_may_begin_with_a_stop_word(verb: str) -> None:
    """``Get the forecast`` is a request, but ``It rains`` is not."""
    first, last = f"{verb} the yearly budget.", "Mail the whole team."
    assert steps(f"{first} {last}") == [first, last]
    assert steps(f"It is the yearly budget. {last}") == [f"It is the yearly budget. {last}"]


@pytest.mark.parametrize(
    "text",
    ["read the file, mail it, and draw a chart", "Read the file. Mail IT. Draw a chart", "mail it"],
)
def test_case_does_not_influence_steps(text: str) -> None:
    """``IT`` in a task is split like ``it``, although it may be an acronym."""
    assert steps(text.upper()) == [one.upper() for one in steps(text)]
    assert steps(text.lower()) == [one.lower() for one in steps(text)]


def test_a_quoted_word_may_begin_a_request() -> None:
    """Quotation marks before the first word are ignored."""
    parts = ['"Read" the whole file.', "Draw a chart."]
    assert steps(" ".join(parts)) == parts


def test_a_step_of_few_words_is_joined_to_its_neighbour() -> None:
    """A step has at least two words that are not stop words."""
    assert steps("Read the file. Draw a chart, then stop") == [
        "Read the file.",
        "Draw a chart stop",
    ]
    assert steps("read it. Parse the file, then stop, then mail the team") == [
        "read it. Parse the file stop",
        "mail the team",
    ]


def test_a_wrapped_line_and_its_continuation_are_one_step() -> None:
    """A long line is continued by a line that begins with a small letter and has no list mark."""
    first = "convert the addresses of all meeting places in the spreadsheet to"
    assert steps(f"{first}\ngeographic coordinates\n- draw a chart") == [
        f"{first} geographic coordinates",
        "draw a chart",
    ]
    for second in ("Draw a chart", "b) draw a chart", "step 2: draw a chart"):
        assert steps(f"{first}\n{second}") == [first, second[-12:]]


def test_a_short_line_ends_its_step() -> None:
    """It does so even if the next line begins with a small letter."""
    lines = ["read the yearly report of the finance team", "draw a chart of it for the team"]
    assert steps("\n".join(lines)) == lines


def test_a_long_text_without_steps_is_searched_in_parts() -> None:
    """The parts together contain the whole text."""
    text = ("the finance report " * 500).strip()
    beginning, *parts = texts_of_task(text)
    assert beginning == parts[0] == text[:MAX_LENGTH]
    assert "".join(parts) == text


@pytest.mark.parametrize("text", ["{0}read a file", "read a file{0}", "{0}read{0}a file"])
def test_no_blank_text_is_searched(text: str) -> None:
    """A model would give blank text a vector that is near to some items."""
    found = texts_of_task(text.format(" \n" * MAX_LENGTH))
    assert all(one.strip() for one in found)
    assert "".join(found[-1].split()).endswith("afile")


def test_a_long_task_has_a_bounded_number_of_steps() -> None:
    """Middle steps are grouped; the first and the last, which often are the request, are kept."""
    parts = [f"do the job number {number} now" for number in range(100)]
    found = steps("\n".join(parts))
    assert len(found) <= MAX_STEPS
    assert (found[0], found[-1]) == (parts[0], parts[-1])
    assert " ".join(found) == " ".join(parts)


@given(st.text(max_size=300) | st.text(alphabet="ab .;,\n-1)then", max_size=300))
def test_any_text_has_a_bounded_number_of_steps(text: str) -> None:
    """Steps have a bounded length and are never blank unless the text is."""
    found = texts_of_task(text)
    assert len(found) <= MAX_STEPS + 1
    assert all(len(one) <= MAX_LENGTH for one in found)
    assert found[0] == text.strip()[:MAX_LENGTH]
    assert all(one.strip() for one in (found if text.strip() else found[1:]))


@pytest.mark.parametrize(
    "unit", ["then ", ", and then", "a. ", "1. ", "- \n", " ", "\n", "x", "\u8bfb", "find it all. "]
)
def test_the_longest_text_is_split_in_linear_time(unit: str) -> None:
    """No pattern is slow on repeated text."""
    sizes = tuple(MAX_QUERY_LENGTH // share for share in (100, 10, 1))
    assert not grows_too_fast(steps, lambda size: (unit * size)[:size], sizes)
    assert len(steps((unit * MAX_QUERY_LENGTH)[:MAX_QUERY_LENGTH])) <= MAX_STEPS


def test_the_best_item_of_each_step_comes_first() -> None:
    """The other items follow. Confidence falls in both parts; an item has its highest one."""
    merged = merge([[(1, 0.5), (4, 0.2)], [(1, 0.9), (2, 0.8)], [(3, 0.4), (2, 0.1), (4, 0.1)]])
    assert merged.order == [1, 3, 2, 4]
    assert merged.confidence == {1: 0.9, 2: 0.8, 3: 0.4, 4: 0.2}
    assert merged.text == {1: 1, 2: 1, 3: 2, 4: 0}


def test_the_best_item_of_the_whole_task_does_not_come_first() -> None:
    """Only the best items of the steps come first."""
    merged = merge([[(9, 0.3)], [(1, 0.9), (2, 0.8)], [(3, 0.2)]])
    assert merged.order == [1, 3, 2, 9]


def test_an_item_that_is_best_for_two_steps_is_explained_by_the_earlier_one() -> None:
    """For equal confidences, the text in which the item ranks better explains it."""
    merged = merge([[], [(1, 0.5), (2, 0.4)], [(2, 0.4), (1, 0.2)], [(2, 0.4)]])
    assert merged.text == {1: 1, 2: 2}


def test_one_text_keeps_its_order() -> None:
    """Items with equal confidences keep their order too."""
    assert merge([[(5, 0.5), (2, 0.5)]]).order == [5, 2]
    merged = merge([[(5, 0.5), (2, 0.5), (9, 0.1)]])
    assert merged.order == [5, 2, 9]
    assert merge([[]]).order == []


def test_a_task_finds_a_tool_for_each_step() -> None:
    """The evidence of each hit has the words of its own step."""
    items = [
        tool("files__read_file", "Read the contents of a file"),
        tool("files__read_folder", "Read the names of the files in a folder"),
        tool("charts__bar_chart", "Draw a bar chart of numbers"),
        tool("mail__send_email", "Send an email to a recipient"),
    ]
    text = "read the contents of a file, then draw a bar chart, then send an email to Bob"
    answer = keyword_engine(items).search(Query(text=text, limit=3, threshold=0.0))
    assert answer.query == text
    assert {hit.name for hit in answer.hits} == {"read_file", "bar_chart", "send_email"}
    (chart,) = (hit for hit in answer.hits if hit.name == "bar_chart")
    assert {term.typed for term in chart.evidence.terms} == {"draw", "bar", "chart"}


def test_an_answer_says_that_its_limit_hides_the_best_items_of_steps() -> None:
    """It names a limit that shows them; a step without a good item does not count."""
    items = [
        tool("charts__bar_chart", "Draw a bar chart of numbers"),
        tool("mail__send_email", "Send an email to a recipient"),
        tool("rooms__book_room", "Book a meeting room"),
    ]
    engine = keyword_engine(items)
    text = "draw a bar chart, then send an email to Bob, then book a meeting room, then zorblax it"
    (notice,) = engine.search(Query(text=text, limit=1)).notices
    assert notice == (
        "The limit 1 leaves out the best items of 2 steps of this task; a limit of 3 shows them."
    )
    assert engine.search(Query(text=text, limit=3)).notices == ()


def test_an_explanation_names_the_step_that_an_item_fits() -> None:
    """The items of other steps may come first with lower confidences."""
    items = [
        tool("charts__bar_chart", "Draw a bar chart of numbers"),
        tool("charts__pie_chart", "Draw a pie chart of numbers"),
        tool("mail__send", "Deliver an email"),
    ]
    text = "draw a bar chart of numbers, then send the mail to Bob"
    engine = keyword_engine(items)
    query = Query(text=text, limit=2, threshold=0.1)
    verdict = explain(engine, query, "charts__pie_chart").verdict
    assert verdict.startswith("Not among the first 2: 2 items come before it, the best is charts__")
    assert verdict.endswith(
        "The task has 2 steps, and the best item of each comes first; this item fits step 1 "
        "(“draw a bar chart of numbers”) best."
    )
    assert "steps" not in explain(engine, Query(text="bar chart"), "charts__pie_chart").verdict
