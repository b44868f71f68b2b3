"""Run processes that act at the same moment."""

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack


def answers_at_once(commands: Sequence[Sequence[str]]) -> list[str]:
    """Start processes, wait until each prints ``ready``, then release all of them together.

    Returns:
        The output of each process after its release.
    """
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for command in commands
        ]
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()
        return [process.communicate()[0] for process in processes]
