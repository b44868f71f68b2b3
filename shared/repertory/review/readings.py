"""The texts that a model reads in a passage, even if it is disguised."""

import html
import re
import unicodedata

from repertory.text import clean, normalized, remembered

# What hides a text from the rules but not from a model: entities, Markdown, tags, links and letters
# that look like others.
_DISGUISE = re.compile(r"[&_~<\[]|[^\x00-\x7f]")
_MARKUP = re.compile(
    r"<!--|-->|~~|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)"
    r"|</?(?:a|b|big|code|del|em|font|i|ins|kbd|mark|p|s|small|span|strong|sub|sup|u)\b[^<>]{0,200}>"
    r"|!?\[(?=[^\[\]]{0,200}\]\()|\]\([^()]{0,500}\)",
    re.IGNORECASE,
)
_OUTER = re.compile(r"(?<!\w)_|_(?!\w)")  # not inside a name such as `snake_case`
_ALIKE = str.maketrans(
    "авекмнорстухіјѕԁԛԝһӏАВЕКМНОРСТУХІЈЅԌαεικνορτυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɡɑ\u115f\u1160\u2800",
    "abekmhopctyxijsdqwhlABEKMHOPCTYXIJSGaeikvoptuxyABEZHIKMNOPTYXiga   ",
)
# In a Unicode name: a small capital, or a letter with a stroke, in a black circle or of a flag.
_FORM = re.compile(
    r"(?<!TAG )\b(?:LATIN|REGIONAL) .{0,40}\bLETTER (?:SMALL CAPITAL )?([A-Z])(?: WITH|\Z)"
)


def readings(passage: str) -> tuple[str, ...]:
    """A passage, and the text that a model reads in it if that differs."""
    if not _DISGUISE.search(passage):
        return (passage,)
    text = normalized("NFKD", clean(html.unescape(passage)))
    if not text.isascii():
        others = (one for one in set(text) if not one.isascii())
        text = text.translate({ord(one): _plain(one) for one in others})
    read = " ".join(_without_markup(text).split())
    return (passage,) if read == passage else (passage, read)


def _without_markup(text: str) -> str:
    """Remove Markdown marks, tags and the addresses of links. Most texts have none of them."""
    has_mark = "_" in text and _OUTER.search(text)
    is_marked = has_mark or any(one in text for one in ("<", "](", "~~", "-->"))
    return _MARKUP.sub("", text) if is_marked else text


@remembered
def _plain(sign: str) -> str:
    """The ASCII letter that a character resembles, else itself; empty for a combining mark."""
    if unicodedata.combining(sign):
        return ""
    sign = sign.translate(_ALIKE)
    form = None if sign.isascii() else _FORM.search(unicodedata.name(sign, ""))
    return form[1] if form else sign
