"""How many searches each key made, in memory: a few names, however many callers there are."""

import threading
from collections import Counter
from collections.abc import Mapping

MAX_NAMES = 100  # of keys; the searches of further ones are counted together
OTHERS = "others"


class Callers:
    """The searches of this process by who asked. Safe to share by threads."""

    def __init__(self) -> None:
        self._searches: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, who: str) -> None:
        """Note a search of a caller, as ``Caller.who`` names it."""
        with self._lock:
            name = _name(who)
            is_known = name in self._searches or len(self._searches) < MAX_NAMES
            self._searches[name if is_known else OTHERS] += 1

    def searches(self) -> Mapping[str, int]:
        """The searches since the start, by the names of keys.

        People who signed in are ``people``, callers without a key ``anonymous``, and the user who
        started the server ``owner``. A key has the prefix ``key:``, so none has such a name.
        """
        with self._lock:
            return dict(self._searches)


def _name(who: str) -> str:
    kind, _, _ = who.partition(":")
    if kind in ("key", "owner"):
        return who
    return "people" if kind == "user" else "anonymous"
