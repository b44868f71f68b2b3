"""The watch service as a process of its own."""

import signal
import threading
from pathlib import Path

from repertory.compose import Parts
from repertory.settings import Settings
from repertory_watch.service import WatchService


def run(settings: Settings, directory: Path) -> None:
    """Watch a directory's sources for a team until SIGINT or SIGTERM.

    Raises:
        ConfigurationError: No team server is configured.
    """
    parts = Parts(settings, directory)
    coordinator = parts.coordinator(parts.queue())
    service = WatchService(settings, parts.workspace, coordinator, parts.coordination.status)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    service.run(stop)
