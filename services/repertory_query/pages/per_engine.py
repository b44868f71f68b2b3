"""Values that are computed once for each search engine, which never changes."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from repertory.search.engine import SearchEngine

T = TypeVar("T")


def per_engine(function: Callable[[SearchEngine], T]) -> Callable[[SearchEngine], T]:
    """A function of an engine, with its value cached for as long as the engine is used."""
    known: WeakKeyDictionary[SearchEngine, T] = WeakKeyDictionary()

    @wraps(function)
    def remembering(engine: SearchEngine) -> T:
        if engine not in known:
            known[engine] = function(engine)
        return known[engine]

    return remembering
