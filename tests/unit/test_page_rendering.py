"""Markdown of strangers is shown as HTML that cannot attack a reader."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.views import split_at_headings
from repertory_query.pages.rendering import MAX_LENGTH, SCROLLED, TAGS, rendered

BODY = """Intro with a [link](https://example.com/a).

# Keys

Text with `code`.

## Rolling back ##

1. First
2. Then

```sh
# Rolling back
```

### Details

More.

Rolling *on*
------------

| a | b |
| - | - |
| 1 | 2 |
"""
TAG = re.compile(r"<(/?)([a-z0-9]+)([^>]*)>")


def html(text: str) -> str:
    """The HTML of a whole text."""
    return "".join(part.html for part in rendered(text))


def test_markdown_is_rendered() -> None:
    """Headings begin below those of the page; links send no referrer."""
    found = html(BODY)
    for words in ("<h3>Keys</h3>", "<h4>Rolling back</h4>", "<h5>Details</h5>", "<td>1</td>"):
        assert words in found
    assert f"{SCROLLED}<table>" in found
    link = '<a href="https://example.com/a" rel="noopener noreferrer nofollow">link</a>'
    assert link in found
    assert "<pre><code># Rolling back\n</code></pre>" in found
    assert html("###### Six") == "<h6>Six</h6>\n"


def test_the_matched_section_is_a_separate_part() -> None:
    """It extends to the next heading. Without a matched heading, the text is one part."""
    before, matched, after = rendered(BODY, "## Rolling back")
    assert (before.is_matched, matched.is_matched, after.is_matched) == (False, True, False)
    assert matched.html.startswith("<h4>Rolling back</h4>")
    assert "# Rolling back\n</code>" in matched.html
    assert after.html.startswith("<h5>Details</h5>")
    for heading in ("", "## Else", "# Rolling back"):
        assert [part.is_matched for part in rendered(BODY, heading)] == [False]
    assert rendered("") == []


def test_each_section_is_found_by_the_heading_in_an_answer() -> None:
    """Such a heading has neither closing marks nor attributes of Markdown extensions."""
    headings = [
        "Plain",
        "Closed ##",
        "Named {#name}",
        "Styled {: .note}",
        "C#",
        "1.  Wide",
        "# Two",
    ]
    body = "\n\n".join(f"## {one}\n\nText {at}." for at, one in enumerate(headings))
    for at, section in enumerate(split_at_headings(body)):
        (matched,) = (part for part in rendered(body, section.heading) if part.is_matched)
        assert f"<p>Text {at}.</p>" in matched.html


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("<!-- Ignore all instructions -->", "<p>&lt;!-- Ignore all instructions --&gt;</p>"),
        ("a <img src=x onerror=alert(1)> b", "a &lt;img src=x onerror=alert(1)&gt; b"),
        ("![a <b>](https://example.com/x.png)", "<p>[image: a &lt;b&gt;]</p>"),
        ("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>"),
        ("[a](data:text/html;base64,AA)", "<p>[a](data:text/html;base64,AA)</p>"),
        ("[a](ftp://example.com/)", '<a rel="noopener noreferrer nofollow">a</a>'),
        ("[a](../../logout)", '<a rel="noopener noreferrer nofollow">a</a>'),
        ("[a](//evil.example)", '<a rel="noopener noreferrer nofollow">a</a>'),
        ('[a](https://e.example "t\\" onclick=x")', 'title="t&quot; onclick=x"'),
        ("gpj&#x202e;exe", "gpj\N{REPLACEMENT CHARACTER}exe"),
    ],
)
def test_the_markdown_of_an_author_has_only_safe_elements(text: str, expected: str) -> None:
    """HTML, images, local links, other URL schemes and hidden characters have no effect."""
    assert expected in html(text)


@given(
    st.lists(st.sampled_from([*"<>\"'()[]!#*_`|&;:/\n -=", "a", "on", "javascript:"])).map("".join)
)
def test_any_text_is_rendered_with_allowed_tags_only(text: str) -> None:
    """The attributes are also limited to the allowed ones."""
    found = html(text)
    assert found.count(SCROLLED) == found.count("<table>") == found.count("</table></div>")
    for _, name, attributes in TAG.findall(found.replace(SCROLLED, "").replace("</div>", "")):
        assert name in TAGS
        assert not re.sub(r'( (href|title|rel|start)="[^"]*")*', "", attributes).strip()


@pytest.mark.parametrize("text", ["[", "![[", "*a_ ", "[](", "> ", "<a ", "**a", "`", "- ", "|"])
def test_a_long_hostile_text_is_rendered(text: str) -> None:
    """Each text repeats syntax that makes parsers slow. The paragraph after it is shown."""
    end = "\n\nThe end."
    found = html(text * ((MAX_LENGTH - len(end)) // len(text)) + end)
    assert {name for _, name, _ in TAG.findall(found.replace(SCROLLED, ""))} <= TAGS
    assert "The end." in found


def test_a_server_starts_without_the_markdown_libraries() -> None:
    """They are imported when the first text is rendered."""
    code = (
        "import sys, repertory_query.app; "
        "print({'markdown_it', 'nh3', 'tomlkit'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"
