"""One of several query processes behind one port, and the memory that they share."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from repertory.stats import Process
from repertory_query.access.rates import RequestCounts


class QueryProcess(NamedTuple):
    """One of the processes.

    Attributes:
        number: Its place, from 0; a process that replaces it has the same number.
        of: The number of processes.
        requests: The requests of each caller to all processes.
        ids: The process id of each process, in shared memory.
    """

    number: int
    of: int
    requests: RequestCounts
    ids: Sequence[int]

    @property
    def shown(self) -> int:
        """Its place, counted from 1."""
        return self.number + 1

    @property
    def process(self) -> Process:
        """The process, for ``stats``."""
        return Process(number=self.shown, of=self.of, pid=self.ids[self.number])

    def enter(self) -> None:
        """Record that this process has the place now."""
        self.ids[self.number] = os.getpid()  # type: ignore[index]  # shared memory, not a list
