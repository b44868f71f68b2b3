"""One of several query processes behind one port, and what they share."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from repertory.stats import Process
from repertory_query.rates import Table


class QueryProcess(NamedTuple):
    """One of the processes.

    Attributes:
        number: Its place, from 0; the process that is started after its end has the same.
        of: How many there are.
        table: Counts the requests of all.
        ids: The process id of each, in memory that all share.
    """

    number: int
    of: int
    table: Table
    ids: Sequence[int]

    @property
    def shown(self) -> int:
        """Its place as people count, from 1."""
        return self.number + 1

    @property
    def process(self) -> Process:
        """The process, for ``stats``."""
        return Process(number=self.shown, of=self.of, pid=self.ids[self.number])

    def enter(self) -> None:
        """Note that this process has the place now."""
        self.ids[self.number] = os.getpid()  # type: ignore[index]  # shared memory, not a list
