"""Workers that end in the middle of a job, like a killed process."""

from collections.abc import Callable
from typing import Any, Self, cast

import msgspec

from repertory.coordination.ports import Coordination
from repertory.index.vectors import VectorStore


class KilledError(BaseException):
    """The worker was killed. Only tests catch this error."""


class Life:
    """The number of calls of its ports that a worker has left; None for no limit."""

    def __init__(self) -> None:
        self.calls: int | None = None

    def spend(self) -> None:
        """Count a call.

        Raises:
            KilledError: No call was left.
        """
        if self.calls is not None:
            if self.calls <= 0:
                raise KilledError
            self.calls -= 1

    def bound(self, parts: Coordination) -> Coordination:
        """Wrap the ports of a worker so that their calls are counted."""
        changed = {name: _Mortal(getattr(parts, name), self) for name in ("deltas", "tombstones")}
        return msgspec.structs.replace(parts, **changed)

    def store(self, store: VectorStore) -> VectorStore:
        """Wrap the store of a worker so that its calls are counted."""
        return cast("VectorStore", _Mortal(store, self))


class _Mortal:
    """A wrapper that counts every method call, also those of collections that it opens."""

    def __init__(self, inner: Any, life: Life) -> None:  # noqa: ANN401 - any port
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
