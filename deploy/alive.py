"""The health check of a container: whether its process spoke on the status board lately.

``alive.py watch`` or ``alive.py worker``; exits with 1 when it did not, or the board is away.
"""

import socket
import sys
import time
from pathlib import Path

from repertory.adapters import Adapters

from repertory.errors import RepertoryError
from repertory.settings import load

SILENCE = 60.0  # seconds; each process speaks every few seconds, also in the middle of a task


def main(part: str) -> int:
    """Check a part, ``watch`` or the ``worker`` of this host, and return an exit code."""
    who = f"worker:{socket.gethostname()}:" if part == "worker" else part
    try:
        board = Adapters(load({}, Path.cwd())).status.reports()
    except RepertoryError as error:
        print(error)
        return 1
    spoke = max((said["at"] for name, said in board.items() if name.startswith(who)), default=0.0)
    return int(time.time() - spoke > SILENCE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
