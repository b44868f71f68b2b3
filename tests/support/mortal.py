"""Workers that end in the middle of a job, as a process does that is killed."""

from collections.abc import Callable
from typing import Any, Self, cast

import msgspec

from repertory.coordination.ports import Coordination
from repertory.index.vectors import VectorStore


class KilledError(BaseException):
    """The worker was killed; nothing catches it but the test."""


class Life:
    """How many more calls of its ports a worker lives for; None for ever."""

    def __init__(self) -> None:
        self.calls: int | None = None

    def spend(self) -> None:
        """Count a call.

        Raises:
            KilledError: It was one too many.
        """
        if self.calls is not None:
            if self.calls <= 0:
                raise KilledError
            self.calls -= 1

    def bound(self, parts: Coordination) -> Coordination:
        """The ports of a worker that lives as long."""
        changed = {name: _Mortal(getattr(parts, name), self) for name in ("deltas", "tombstones")}
        return msgspec.structs.replace(parts, **changed)

    def store(self, store: VectorStore) -> VectorStore:
        """The store of a worker that lives as long."""
        return cast("VectorStore", _Mortal(store, self))


class _Mortal:
    """Something whose methods spend a life; so do those of the collections that it opens."""

    def __init__(self, inner: Any, life: Life) -> None:  # noqa: ANN401 - of any port
        self._inner = inner
        self._life = life

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as in the port
        value = getattr(self._inner, name)
        if not callable(value):
            return value
        return self._call(value, opens=name in ("open", "create"))

    def _call(self, method: Callable[..., Any], *, opens: bool) -> Callable[..., Any]:
        def call(*args: object, **named: object) -> Any:  # noqa: ANN401 - as in the port
            self._life.spend()
            found = method(*args, **named)
            return _Mortal(found, self._life) if opens else found

        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._inner.close()
