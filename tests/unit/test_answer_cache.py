"""The cache of encoded answers: bounded by size, for one engine at a time."""

from repertory.search.answer import Answer, Mode
from repertory.search.query import Query
from repertory_query.backend.answering import AnswerCache, EncodedAnswer
from tests.support.builders import skill
from tests.support.keyword_search import keyword_engine

ANSWER = Answer(query="a", hits=[], threshold=0.3, mode=Mode.KEYWORD)


def encoded(size: int) -> EncodedAnswer:
    """An answer with ``size`` bytes of JSON."""
    return EncodedAnswer(ANSWER, b"x" * size)


def test_the_least_recently_used_answers_are_evicted() -> None:
    """The total size is bounded. A larger answer is not kept, and evicts nothing."""
    cache, engine = AnswerCache(10), keyword_engine([skill("bread")])
    keys = [(Query(text=text), None) for text in "abcd"]
    for key in keys[:2]:
        cache.put(engine, key, encoded(4))
    assert cache.get(engine, keys[0])
    cache.put(engine, keys[2], encoded(4))
    assert [bool(cache.get(engine, key)) for key in keys] == [True, False, True, False]
    cache.put(engine, keys[3], encoded(11))
    assert [bool(cache.get(engine, key)) for key in keys] == [True, False, True, False]
    cache.put(engine, keys[0], encoded(10))
    assert [bool(cache.get(engine, key)) for key in keys] == [True, False, False, False]


def test_another_engine_starts_with_an_empty_cache() -> None:
    """Another engine has another version of the index, so its answers may differ."""
    cache, key = AnswerCache(10), (Query(text="a"), None)
    one, other = (keyword_engine([skill(name)]) for name in ("bread", "cake"))
    cache.put(one, key, encoded(4))
    assert cache.get(other, key) is None
    assert cache.get(one, key)
    cache.put(other, key, encoded(4))
    assert cache.get(one, key) is None
