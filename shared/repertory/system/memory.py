"""Memory management of long-running processes.

Operations that the system does not support are skipped without an error.
"""

import contextlib
import ctypes
import gc
import re
import sys
from pathlib import Path

# Of glibc's <malloc.h> and Linux's <sys/mman.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_DONTNEED = 4

_LARGE = 256 * 2**10  # bytes; larger blocks are returned as soon as they are free
# The number of new objects after which Python collects cycles; a search makes many and no cycle.
_OBJECTS_BETWEEN_COLLECTIONS = 10_000
_HEAPS = 2  # the default is eight per core, each with its own free blocks

# The address, the file, and how many kilobytes of it were changed.
_MAPPING = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) r\S+ \S+ \S+ \d+ +(/.+)\n(?:[A-Z].*\n)*?Anonymous: +(\d+) kB$", re.M
)


def return_memory_early() -> None:
    """Make a long-running process return freed memory to the system early."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        for option, value in (
            (_M_ARENA_MAX, _HEAPS),
            (_M_MMAP_THRESHOLD, _LARGE),
            (_M_TRIM_THRESHOLD, _LARGE),
        ):
            libc.mallopt(option, value)


def exempt_existing_objects() -> None:
    """Exempt all existing objects from the garbage collector.

    A server keeps its imported modules. Collections that traverse them stop all threads: one search
    in a few hundred took 0.1 s longer.
    """
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)


def trim() -> None:
    """Return the free memory of the heaps to the system."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def drop_pages(file: Path) -> None:
    """Drop the pages of a mapped file from this process; a page returns when it is used.

    Modified mappings are skipped, because their changes are in no file.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        libc, maps = ctypes.CDLL(None), Path("/proc/self/smaps").read_text("utf-8", "replace")
        for mapping in _MAPPING.finditer(maps):
            start, end, name, changed = mapping.groups()
            if name == str(file.resolve()) and changed == "0":
                size = int(end, 16) - int(start, 16)
                libc.madvise(ctypes.c_void_p(int(start, 16)), ctypes.c_size_t(size), _DONTNEED)
