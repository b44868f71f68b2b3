"""Queries that quote a text find the item that contains it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from repertory.search.duplicates import MAX_DUPLICATES
from repertory.search.keyword_arm import MAX_BY_WORDS
from repertory.search.query import Query
from repertory.search.quotations import MIN_WORDS, Title, quotation
from tests.support.builders import skill, tool
from tests.support.growth import grows_too_fast
from tests.support.hybrid_search import hybrid_engine

BODY = """
# Installing

服务器会将最后的答案保留一分钟
Änderungen übernimmt der Dienst sofort.

Use `uv pip install "fastapi>=0.115"`, or
**add** it to [the configuration](https://example.com/configuration#a), then run the server again.

## Settings

retries = 10
The server keeps    its **last** answer for a minute. Uvicorn keeps tensors.
The server doesn\u2019t wait for it. See [it](https://docs.example/_static/a_b/logo).
> **Note:** the cache of the engine
> is\u00a0removed at midnight.

>>> from server import answer

Ask security_team@mail.example.com about `src/**/tests/*.py`.
A word with _emphasis_ and `__init__` code, and uv run --with requests-html 1.5.
"""
WORDS = ["harbour", "lantern", "violin", "granite", "orchard", "falcon", "meadow", "copper"]
WORDS += ["saddle", "thistle", "walnut", "cobalt", "pepper", "anchor"]
GUIDE = skill("guide", "How to begin", body=BODY)


@pytest.mark.parametrize(
    "text",
    [
        "the server keeps its last answer for a minute",
        "The server keeps its last\nanswer for a minute.",
        "“the SERVER keeps its last answer”",
        'uv pip install "fastapi>=0.115"',
        'uv pip install "fastapi >= 0.115"',
        "or add it to the configuration",
        "retries = 10",
        "uvicorn keeps tensors",
        "将最后的答案保留一分钟",
        "the `server` doesn't wait for it…",
        "the cache of the engine is removed at midnight",
        "> Note: the cache of the engine\n> is removed",
        ">>> from server import answer",
        "docs.example/_static/a_b/logo",
        "a word with emphasis and __init__ code",
        "https://example.com/configuration#a",
        "example.com/configuration#a",
        "Security_Team@mail.example.com",
        "src/**/tests/*.py",
        "ÄNDERUNGEN ÜBERNIMMT der Dienst sofort",
    ],
)
def test_a_quotation_is_found_whatever_its_spaces_and_markup(text: str) -> None:
    """Case, spaces, markup, links and the end of a sentence do not matter."""
    wanted = quotation(text)
    assert wanted
    assert wanted.is_in(BODY)


@pytest.mark.parametrize(
    "text",
    [
        "the server keeps an answer for a minute",
        "retries = 1",
        "its last answer for the minute",
        'pip install "fastapi>=0.11"',
        "uv run --with requests",
        "team@mail.example.com",
        "src/**/tests/*.pyi",
        "uv run --with requests-html 1",
    ],
)
def test_other_words_are_no_quotation(text: str) -> None:
    """Every word must be in its place, as a whole."""
    wanted = quotation(text)
    assert wanted
    assert not wanted.is_in(BODY)


@pytest.mark.parametrize("text", ["create a word document", "run the tests", "x = 1"])
def test_a_few_usual_words_may_only_be_a_title(text: str) -> None:
    """Many texts have them by chance."""
    wanted = quotation(text)
    assert wanted
    assert isinstance(wanted, Title) == (text != "x = 1")
    assert wanted.is_of(skill("guide", text, body=text)) == (text == "x = 1")


@pytest.mark.parametrize("text", ["x = ", "= = = = =", "--verbose", "settings", ""])
def test_a_single_word_quotes_nothing(text: str) -> None:
    """Many sections have a title of one word."""
    assert quotation(text) is None


@pytest.mark.parametrize(
    ("typed", "heading", "is_so"),
    [
        ("supported versions", "## Supported Versions", True),
        ("Supported versions:", "# 1.2 **Supported** `versions`", True),
        ("supported versions", "## [Supported Versions](https://example.com/a)", True),
        ("supported versions", "Supported Versions\n---", False),  # not normalized
        ("supported versions", "## All supported versions", False),
        ("supported versions", "## Supported versions of Python", False),
        ("supported versions", "```sh\n# Supported versions\n```", False),
        ("supported versions", "Supported versions", False),
        ("404 errors", "## 404 errors", True),
        ("using c#", "## Using C#", True),
        ("using c", "## Using C#", False),
        ("using c", "## Using C++ ##", False),
        ("quick start", "## 🚀 Quick start ✨", True),
        ("🚀 quick start", "## Quick start", True),
        ("quick start", "## 1️⃣ Quick start", True),
        ("quick start", "## **Quick start:**", True),
        ("quick start", '## 1. **"Quick start"**', True),
        ("quick start", "## Quick start [¶](#quick-start)", True),
        ("किताब की", "## किताब का", False),
    ],
)
def test_a_query_may_be_the_title_of_a_section(typed: str, heading: str, *, is_so: bool) -> None:
    """The whole title, without its number and its markup; a comment in code is none."""
    wanted = quotation(typed)
    assert wanted
    assert wanted.is_of(skill("guide", "A", body=f"Text.\n\n{heading}\n\nText.")) == is_so


def test_an_item_with_a_section_of_this_title_is_found() -> None:
    """It comes before items that have these words anywhere, not before those that are about it."""
    policy = skill("policy", "What we promise", body="# Policy\n\n## Supported versions\n\nNone.")
    noise = [
        skill(f"log-{number}", "What changed", body=f"Supported {number} versions.")
        for number in range(5)
    ]
    about = skill("supported-versions-of-python", "Which versions of Python are supported")
    hits = hybrid_engine([*noise, policy, about]).search(Query(text="Supported versions")).hits
    assert [hit.id for hit in hits[:2]] == [about.id, policy.id]
    assert (hits[1].matched_in, hits[1].reason) == (
        "## Supported versions",
        "Exact text match, in “Supported versions”",
    )
    assert 0.6 <= hits[1].confidence < 0.8


@pytest.mark.parametrize("text", ["get_logger", "read every word of it", "supported versions"])
def test_invisible_characters_of_a_copied_text_do_not_matter(text: str) -> None:
    """Items do not have them either."""
    body = "# Supported versions\n\nCall `get_logger`, and read every word of it."
    engine = hybrid_engine([skill("guide", "How to begin", body)])
    (hit,) = engine.search(Query(text=text)).hits
    copied = "\ufeff{}\u200b".format(text.replace(" ", "\u200b "))
    (other,) = engine.search(Query(text=copied)).hits
    assert (other.reason, other.confidence) == (hit.reason, hit.confidence)


def test_the_item_that_contains_the_query_comes_first() -> None:
    """The reason names its first section with the quotation."""
    near = [skill(f"server-{number}", "The server keeps an answer") for number in range(5)]
    engine = hybrid_engine([GUIDE, *near])
    text = "The server keeps its last answer for a minute"
    hit, *others = engine.search(Query(text=text, limit=9, threshold=0.0)).hits
    assert (hit.id, hit.matched_in) == (GUIDE.id, "## Settings")
    assert hit.reason == "Exact text match, in “Settings”"
    assert hit.confidence >= 0.92
    assert all(other.confidence < hit.confidence for other in others)
    (first, *_) = engine.search(Query(text="How the server keeps its last minute")).hits
    assert first.reason != hit.reason


def test_what_the_texts_say_against_it_counts() -> None:
    """A quotation does not hide that an item does the opposite, or that its name was typed."""
    package = "install a package from the registry"
    remove = skill("uninstall-package", "Removes software", body=f"Do not use it to {package}.")
    add = skill("install-package", "Installs packages of a registry", body=f"# I {package} here")
    hits = hybrid_engine([remove, add]).search(Query(text=package, threshold=0.0)).hits
    assert [hit.id for hit in hits] == [add.id, remove.id]
    assert hits[1].confidence <= 0.59
    named = skill("install-it-on-a-linux-server", body="# Install it on a Linux server")
    (hit,) = hybrid_engine([named]).search(Query(text="Install it on a Linux server")).hits
    assert hit.reason == "Exact name match"


def test_versions_of_a_skill_are_compared_each() -> None:
    """Skills with the same name and description may have different bodies."""
    first = skill("note", "Things to remember about servers", body=" ".join(WORDS[:6]))
    other = replace(first, id="other/note", source="other", body=" ".join(reversed(WORDS[:6])))
    engine = hybrid_engine([first, other])
    for item in (first, other):
        (hit, *_) = engine.search(Query(text=" ".join(item.body.split()[:5]))).hits
        assert (hit.id, hit.reason) == (item.id, "Exact text match")


def test_copies_of_a_quoted_item_are_one_hit() -> None:
    """They leave room for another item with the quotation, however many they are."""
    copies = [
        replace(skill("copy", "Begin here", body=BODY), id=f"repo-{number}/copy", source="repo")
        for number in range(2 * MAX_BY_WORDS)
    ]
    engine = hybrid_engine([*copies, GUIDE])
    text = "The server keeps its last answer for a minute"
    hits = engine.search(Query(text=text, limit=9)).hits
    assert {hit.name: len(hit.duplicates) for hit in hits} == {"copy": MAX_DUPLICATES, "guide": 0}
    assert all(hit.confidence >= 0.92 for hit in hits)


def test_a_description_is_quoted_as_well() -> None:
    """A tool has only a description, whose words are evidence enough."""
    letters = skill("letters", "Sends a letter to the given person by mail.")
    mail = tool("desk__mail", letters.description)
    text = "a letter to the given person"
    hits = hybrid_engine([GUIDE, letters, mail]).search(Query(text=text)).hits
    assert [(hit.id, hit.reason == "Exact text match") for hit in hits] == [
        (letters.id, True),
        (mail.id, False),
    ]


@pytest.mark.parametrize("piece", ["keeps last ", "keeps`* ", "keeps](", "last", "[a](b) keeps "])
def test_a_search_for_a_quotation_takes_linear_time(piece: str) -> None:
    """Ten times the text takes about ten times as long."""
    wanted = quotation("the server keeps last answers for a minute")
    assert wanted
    assert not grows_too_fast(wanted.is_in, lambda size: piece * size)


@pytest.mark.parametrize("line", ["# bug fixes {}\n", "# x bug fixes\n", "#", "# . . bug\n"])
def test_a_search_for_a_title_takes_linear_time(line: str) -> None:
    """Also if many titles have its words."""
    wanted = quotation("bug fixes")
    assert wanted

    def body(size: int) -> str:
        return "".join(line.format(number) for number in range(size))

    assert not grows_too_fast(lambda text: wanted.is_of(skill("log", body=text)), body)


@given(data=st.data())
def test_any_part_of_a_text_is_found_among_similar_texts(data: st.DataObject) -> None:
    """All items have the same words, in other orders."""
    words = data.draw(st.lists(st.sampled_from(WORDS), min_size=8, max_size=12, unique=True))
    orders = data.draw(st.lists(st.permutations(words), min_size=1, max_size=15))
    texts = [" ".join(order) for order in orders]
    items = [skill(f"s{number}", "A note", body=text) for number, text in enumerate(texts)]
    first = data.draw(st.integers(0, len(words) - MIN_WORDS))
    quoted = " ".join(orders[0][first : first + MIN_WORDS])
    hits = hybrid_engine(items).search(Query(text=quoted, limit=50, threshold=0.0)).hits
    found = {one for hit in hits if hit.confidence >= 0.92 for one in (hit.id, *hit.duplicates)}
    assert found == {one.id for one, text in zip(items, texts, strict=True) if quoted in text}
