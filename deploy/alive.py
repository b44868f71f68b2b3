"""The health check of a container: whether its process reported to the status board lately.

``alive.py watch`` or ``alive.py worker``; exits with 1 if not, or if the board is unavailable. With
``live`` an unavailable board is no fault of the process: to start it again would not help.
"""

import socket
import sys
import time
from pathlib import Path

from repertory.compose import Parts
from repertory.errors import RepertoryError
from repertory.settings import load

MAX_AGE_S = 60.0  # of a report; each process reports every few seconds, also during a task


def main(part: str, *, live: bool = False) -> int:
    """Check a part, ``watch`` or the ``worker`` of this host, and return an exit code."""
    who = f"worker:{socket.gethostname()}:" if part == "worker" else part
    try:
        parts = Parts(load({}, Path.cwd()), Path.cwd())
        reports = parts.coordination.status.reports()
    except RepertoryError as error:
        print(error)
        return 0 if live else 1
    own = [report["at"] for name, report in reports.items() if name.startswith(who)]
    return int(time.time() - max(own, default=0.0) > MAX_AGE_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], live="live" in sys.argv[2:]))
