"""Matched words are marked on pages, and an excerpt of a section is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from repertory.search.answer import Term
from repertory_query.pages.highlighting import MAX_EXCERPT, Highlighter

BODY = """# Keys

Nothing of interest here.

## After a leak

First, breathe.

- Revoke the [leaked](https://example.com) keys **at once**, and <b>tell</b> who uses them.
- Then write a report.

```sh
rotate --key
```

## Empty

### Below it

A leak below.
"""


def marker(*words: str) -> Highlighter:
    """A marker of these matched words."""
    return Highlighter([Term(typed=word, matched=word) for word in words])


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (("key",), "Rotate API keys", "Rotate API <mark>keys</mark>"),
        (("note",), "search_notes", "search_<mark>notes</mark>"),
        (("cafe",), "Ein Café", "Ein <mark>Café</mark>"),
        (("ab",), "abc <ab>", "abc &lt;<mark>ab</mark>&gt;"),
        (("b", "amp"), "a & b", "a &amp; <mark>b</mark>"),
        (("検索",), "全文検索する", "全文<mark>検索</mark>する"),
        (("全文", "文検"), "全文検索", "<mark>全文</mark><mark>検</mark>索"),
        (("resume",), "Un re\u0301sume\u0301.", "Un <mark>re\u0301sume\u0301</mark>."),
        (("अनुवाद",), "हिंदी अनुवाद", "हिंदी <mark>अनुवाद</mark>"),
        (("รุ", "ุป"), "สรุป", "ส<mark>รุ</mark><mark>ป</mark>"),
        ((), "Nothing", "Nothing"),
        (("a",), "\u202ea", "\N{REPLACEMENT CHARACTER}<mark>a</mark>"),
    ],
)
def test_matched_words_are_marked(words: tuple[str, ...], text: str, expected: str) -> None:
    """All forms of whole words are marked; the rest of the text is escaped."""
    assert marker(*words).marked(text) == expected


@given(st.text(), st.lists(st.text(min_size=1, max_size=5), max_size=3))
def test_marking_changes_nothing_else(text: str, words: list[str]) -> None:
    """Without the tags, the text equals the escaped text."""
    shown = marker(*words).marked(text)
    plain = shown.replace("<mark>", "").replace("</mark>", "")
    assert plain == marker().marked(text)
    assert "<" not in plain
    assert marker().marked("a<b") == escape("a<b")


def test_an_excerpt_is_the_passage_with_most_matched_words() -> None:
    """Markdown syntax is removed, and HTML is escaped."""
    found = marker("leak", "keys").excerpt(BODY, "## After a leak")
    expected = (
        "Revoke the <mark>leaked</mark> <mark>keys</mark> at once, and &lt;b&gt;tell&lt;/b&gt; "
        "who uses them."
    )
    assert found == expected
    assert (
        marker("keys").excerpt("# To do\n\n- [ ] All keys\n", "# To do") == "All <mark>keys</mark>"
    )
    assert "below" in marker("leak").excerpt(BODY, "## Empty")
    assert not marker("leak").excerpt(BODY, "## Missing")


def test_an_excerpt_of_a_long_passage_is_shortened() -> None:
    """It is cut at spaces around the first match."""
    text = f"# A\n\n{'before ' * 100}needle {'after ' * 100}"
    found = marker("needle").excerpt(text, "# A")
    assert found.startswith("…before")
    assert found.endswith("after…")
    assert "<mark>needle</mark>" in found
    assert len(found.striptags()) <= MAX_EXCERPT + 2


@pytest.mark.parametrize("before", ["第一章 ", ""])
def test_an_excerpt_without_spaces_shows_the_match(before: str) -> None:
    """A Chinese text is cut anywhere instead of at a space far from the match."""
    text = f"# A\n\n{before}{'前' * 500}検索{'後' * 500} 終"
    found = marker("検索").excerpt(text, "# A")
    assert found.startswith("…前")
    assert found.endswith("後…")
    assert "<mark>検索</mark>" in found
    assert len(found.striptags()) <= MAX_EXCERPT + 2
    assert "<mark>検索</mark>" in marker("検索").excerpt(f"# A\n\n甲 検索{'後' * 500}", "# A")
