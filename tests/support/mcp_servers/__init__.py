"""Scripts of well-behaved and misbehaving MCP servers."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVERS = Path(__file__).parent
# A stdio server with two tools. It starts quickly because it does not import the SDK, which takes
# 1.5 seconds.
WEATHER: dict[str, object] = {
    "command": sys.executable,
    "args": [str(SERVERS / "declared.py"), str(SERVERS / "weather.json")],
}


@contextmanager
def started(script: str, *arguments: str, **environment: str) -> Iterator[str]:
    """Start a server script with HTTP transport; yields the URL that it prints."""
    process = subprocess.Popen(
        [sys.executable, str(SERVERS / script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | environment,
    )
    try:
        assert process.stdout
        url = process.stdout.readline().strip()
        assert url, f"{script} has ended"
        yield url
    finally:
        process.kill()
        process.communicate()
