"""Renders untrusted Markdown as HTML: without its own HTML, and then sanitised.

The libraries are imported at the first use, so that the server starts faster.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from markupsafe import Markup, escape

from repertory.catalogue.views import plain_heading
from repertory_query.pages.page import legible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_LENGTH = 50_000  # characters; a longer text is shown unrendered
SHALLOWEST = 3  # the level of an author's top headings, since the page uses the levels above
TAGS = {
    *("a", "blockquote", "br", "code", "del", "em", "hr", "li", "ol", "p", "pre", "s", "strong"),
    *("h3", "h4", "h5", "h6", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
SCHEMES = {"http", "https", "mailto"}
# As around the other tables, so that a wide table can be scrolled with the keyboard.
SCROLLED = '<div class="wide" tabindex="0" role="region" aria-label="Table">'
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}


class Part(msgspec.Struct, frozen=True):
    """A part of a rendered text, and whether it is the section that matched."""

    html: Markup
    is_matched: bool = False


def rendered(text: str, matched: str = "") -> list[Part]:
    """A text as HTML, in up to three parts, one of which is the matched section.

    An author's HTML is shown as text, an image as its description, and relative links lose their
    address.

    Args:
        text: Markdown, up to ``MAX_LENGTH`` characters.
        matched: The heading of the section that matched, as written: ``## Rolling back``.
    """
    environment: dict[str, Any] = {}
    tokens = _parser().parse(text, environment)
    start, end = _section(tokens, matched)
    pieces = [(tokens[:start], False), (tokens[start:end], True), (tokens[end:], False)]
    return [Part(_html(piece, environment), is_matched) for piece, is_matched in pieces if piece]


def _section(tokens: Sequence["Token"], heading: str) -> tuple[int, int]:
    """The positions of the first section with a heading, and of the next heading."""
    headings = [
        place
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]
    for number, place in enumerate(headings):
        title = plain_heading(tokens[place + 1].content)
        if heading and f"{tokens[place].markup} {title}" == heading:
            return place, [*headings, len(tokens)][number + 1]
    return len(tokens), len(tokens)


def _html(tokens: Sequence["Token"], environment: dict[str, Any]) -> Markup:
    import nh3  # noqa: PLC0415 - see above

    parser = _parser()
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + SHALLOWEST - 1, 6)}"
    html: str = parser.renderer.render(tokens, parser.options, environment)
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
    )
    clean = clean.replace("<table>", f"{SCROLLED}<table>").replace("</table>", "</table></div>")
    return Markup(legible(clean))  # noqa: S704 - it is sanitised


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - see above

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image)
    return parser


def _image(_: object, tokens: Sequence["Token"], place: int, *__: object) -> str:
    """An image as text, because the pages load nothing from other sites."""
    return f"[image: {escape(tokens[place].content)}]"
