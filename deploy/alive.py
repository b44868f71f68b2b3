"""The health check of a container: whether its process has reported to the status board recently.

Call it as ``alive.py watch`` or ``alive.py worker``. It exits with 1 if there is no recent report,
or if the board is unavailable. With ``live`` as the second argument, an unavailable board is no
failure, because restarting the process would not help.
"""

import socket
import sys
import time
from pathlib import Path

from repertory.compose import Parts
from repertory.errors import RepertoryError
from repertory.settings import load

MAX_AGE_S = 60.0  # of a report; each process reports every few seconds, even during a task


def main(part: str, *, live: bool = False) -> int:
    """Check ``watch``, or the ``worker`` of this host, and return the exit code."""
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
