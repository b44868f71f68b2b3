"""Repertory: one searchable list of the skills, tools and documents that AI agents can use.

``repertory.open()`` opens the index of a directory in this process. ``repertory.connect(url)`` uses
a server.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repertory.api import AsyncSession as AsyncSession
    from repertory.api import Session as Session
    from repertory.api import connect as connect
    from repertory.api import open_directory as open  # noqa: A004 - it reads as `repertory.open`

__all__ = ["AsyncSession", "Session", "connect", "open"]


def __dir__() -> list[str]:
    """The public names, most of which are imported at their first use."""
    return [*globals(), *__all__]


if not TYPE_CHECKING:  # with it, type checkers accept names that do not exist

    def __getattr__(name: str) -> object:
        """Import the interface at its first use, because the command line does not need it."""
        if name not in __all__:
            raise AttributeError(f"module 'repertory' has no attribute {name!r}")
        from repertory import api  # noqa: PLC0415 - slow to import

        return getattr(api, "open_directory" if name == "open" else name)
