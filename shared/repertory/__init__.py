"""Repertory: one searchable list of the skills, tools and documents that AI agents can use.

``repertory.open()`` is a directory's, in this process; ``repertory.connect(url)`` is a server's.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repertory.api import AsyncSession as AsyncSession
    from repertory.api import Session as Session
    from repertory.api import connect as connect
    from repertory.api import open_directory as open  # noqa: A004 - it reads as `repertory.open`

__all__ = ["AsyncSession", "Session", "connect", "open"]


def __dir__() -> list[str]:
    """The public names, most of which are imported at their first use."""
    return [*globals(), *__all__]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - as typed above
    """Import the interface when it is first used: the command line has no need of it."""
    if name not in __all__:
        raise AttributeError(f"module 'repertory' has no attribute {name!r}")
    from repertory import api  # noqa: PLC0415 - see above

    return getattr(api, "open_directory" if name == "open" else name)
