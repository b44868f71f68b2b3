"""Whether a model knows the words of a text, or only spells them out."""

import unicodedata

from tokenizers import Encoding, Tokenizer

UNKNOWN = frozenset({"[UNK]", "<unk>"})
_BEGUN = "##", "▁"  # prefixes that tokenizers add to tokens


def knows(tokenizer: Tokenizer, text: str) -> bool:
    """Whether a model knows at least half of the words of a text.

    An English model has no tokens for Thai, so all Thai texts look the same to it. It spells out
    Russian letter by letter, so a Russian query matches any Russian text. ASCII texts always pass.
    """
    if text.isascii():
        return True
    encoding: Encoding = tokenizer.encode(text, add_special_tokens=False)
    words: dict[int, list[str]] = {}
    for token, word in zip(encoding.tokens, encoding.word_ids, strict=True):
        words.setdefault(-1 if word is None else word, []).append(token)
    known = [_is_known(tokens) for tokens in words.values() if not _are_signs(tokens)]
    return 2 * sum(known) >= len(known)


def _is_known(tokens: list[str]) -> bool:
    spelled = sum(map(_is_letter, map(_plain, tokens)))
    return UNKNOWN.isdisjoint(tokens) and 2 * spelled <= len(tokens)


def _is_letter(token: str) -> bool:
    """Whether a token is a single non-ASCII character; CJK characters count as words instead."""
    is_one = len(token) == 1 and not token.isascii()
    return is_one and not unicodedata.name(token, "").startswith("CJK ")


def _are_signs(tokens: list[str]) -> bool:
    return UNKNOWN.isdisjoint(tokens) and not any(map(str.isalnum, "".join(map(_plain, tokens))))


def _plain(token: str) -> str:
    for sign in _BEGUN:
        token = token.removeprefix(sign)
    return token
