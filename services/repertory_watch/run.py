"""The watch service as a separate process."""

import os
import signal
import socket
import threading
from functools import partial
from pathlib import Path

import msgspec

from repertory import telemetry
from repertory.compose import Parts
from repertory.coordination.lease import Holder
from repertory.settings import Settings
from repertory_watch.leading import leading, wait
from repertory_watch.service import WatchService


def run(settings: Settings, directory: Path) -> None:
    """Watch a directory's sources for a team until SIGINT or SIGTERM.

    While another process watches for the same team, this one waits.

    Raises:
        ConfigurationError: No team server is configured.
    """
    parts = Parts(settings, directory)
    queue, coordination = parts.queue(), parts.coordination
    telemetry.begin("repertory-watch", wanted=settings.values.telemetry)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, partial(_end, stop))
    about = Holder(host=socket.gethostname(), process=os.getpid(), directory=str(directory))
    begin = partial(parts.coordinator, queue)
    while coordinator := wait(coordination.lease, about, stop, begin):
        service = WatchService(settings, parts.workspace, coordinator, coordination.status)

        def now_about(service: WatchService = service) -> Holder:
            return msgspec.structs.replace(about, configuration=service.configuration)

        with leading(coordination.lease, now_about, stop) as ended:
            service.run(ended)


def _end(stop: threading.Event, *_: object) -> None:
    """Set an event when a signal arrives.

    This happens on another thread, because this thread may hold the lock of the event.
    """
    threading.Thread(target=stop.set).start()
