"""Detects common encodings from before UTF-8 by the letters of a text."""

import re
from collections.abc import Callable

_ASCII = re.compile(r"[\x00-\x7f]+")
_WORD = re.compile(r"[^\x00-\x7f]{3,}")
_OFTEN_CYRILLIC = re.compile("[оеаинтсрвлі]")  # two thirds of the letters of a Russian text
_IN_A_ROW = re.compile(r"[^\x00-\x7f]{4}")
_KANA = re.compile("[\u3041-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_HANJA = re.compile("[\u4e00-\u9fff\uf900-\ufaff]")
# The first bytes of the rare characters of GB 2312. Those of the 3,755 common ones are lower.
_RARE = bytes(range(0xD8, 0x100))


def in_older_encoding(data: bytes) -> tuple[str, str] | None:
    """Decode bytes that are not UTF-8. Returns the text and the encoding; None if unclear.

    Bytes that are mostly UTF-8, or only cut at the end, count as damaged UTF-8.
    """
    if _is_cut(data):
        return None
    replaced = data.decode(errors="replace")
    if 2 * replaced.count("\ufffd") <= len(_ASCII.sub("", replaced)):
        return None
    for name, (encoding, is_of) in _ENCODINGS.items():
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if is_of(text):
            return text, name
    return None


def _is_cut(data: bytes) -> bool:
    """Whether the text is UTF-8 with a cut last character, unlike a word with an accented end."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        begun = data[error.start :]
        return "end of data" in error.reason and (len(begun) > 1 or begun in (b"\xc2", b"\xc3"))
    return False


def _is_cyrillic(text: str) -> bool:
    """Whether most characters are in words and are common letters of Russian or Ukrainian.

    For Greek and Hebrew, which have similar bytes, it is only a third.
    """
    words = "".join(_WORD.findall(text))
    return 2 * len(_OFTEN_CYRILLIC.findall(words)) > len(_ASCII.sub("", text))


def _is_japanese(text: str) -> bool:
    """Whether more than a fifth of the characters are kana."""
    return 5 * len(_KANA.findall(text)) > len(_ASCII.sub("", text))


def _is_korean(text: str) -> bool:
    """Whether most characters are syllables, few of which take eight bytes in EUC-KR.

    A Chinese text has syllables in this encoding, too, but with Chinese characters between them.
    """
    signs = _ASCII.sub("", text)
    size, syllables = len(signs.encode("euc_kr", "ignore")), len(_HANGUL.findall(text))
    is_chinese = 6 * len(_HANJA.findall(text)) > syllables
    return 2 * syllables > len(signs) and size < 3 * len(signs) and not is_chinese


def _is_chinese(text: str) -> bool:
    """Whether most characters are common ones."""
    signs = _ASCII.sub("", text)
    first = signs.encode("gb2312", "ignore")[::2]
    return 5 * len(first.translate(None, _RARE)) > 3 * len(signs)


def _is_western(text: str) -> bool:
    """Whether there are no four accented letters in a row."""
    return not _IN_A_ROW.search(text)


# In order of trial: an encoding comes before those that would accept its texts.
_ENCODINGS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "KOI8": ("koi8_u", _is_cyrillic),
    "Windows-1251": ("cp1251", _is_cyrillic),
    "Shift JIS": ("cp932", _is_japanese),
    "EUC-JP": ("euc_jp", _is_japanese),
    "EUC-KR": ("cp949", _is_korean),
    "GB 18030": ("gb18030", _is_chinese),
    "Windows-1252": ("cp1252", _is_western),
}
