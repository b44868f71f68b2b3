"""Long-running processes return memory to the system."""

import mmap
import re
import subprocess
import sys
from pathlib import Path

import pytest

from repertory.system.memory import drop_pages, return_memory_early, trim

SIZE = 64 * mmap.PAGESIZE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can drop pages")


def resident(file: Path) -> int:
    """The resident size of a mapped file in kilobytes."""
    maps = Path("/proc/self/smaps").read_text("utf-8")
    return int(re.findall(rf"{re.escape(str(file))}\n(?:[A-Z].*\n)*?Rss: +(\d+) kB", maps)[0])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of many pages."""
    path = tmp_path / "weights"
    path.write_bytes(b"w" * SIZE)
    return path


def test_unchanged_pages_are_dropped_and_read_again(file: Path) -> None:
    """The content of the mapping stays the same."""
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), SIZE, prot=mmap.PROT_READ) as mapped:
        assert mapped[:] == b"w" * SIZE
        before = resident(file)
        drop_pages(file)

        assert (before, resident(file)) == (SIZE // 1024, 0)
        assert mapped[:] == b"w" * SIZE


def test_a_changed_mapping_is_not_dropped(file: Path) -> None:
    """The change is only in memory and would be lost."""
    with (
        file.open("rb") as stream,
        mmap.mmap(stream.fileno(), SIZE, access=mmap.ACCESS_COPY) as mapped,
    ):
        mapped[0] = ord("c")
        drop_pages(file)

        assert mapped[:2] == b"cw"


def test_the_allocator_can_be_set_on_every_system() -> None:
    """The calls must not fail on systems without these settings."""
    return_memory_early()
    trim()


KEPT = """
import gc, weakref
from repertory.system.memory import exempt_existing_objects
class Node: pass
exempt_existing_objects()
looked_at = len(gc.get_objects())
node = Node()
node.self, gone = node, weakref.ref(node)
del node
gc.collect()
print(looked_at, gone() is None)
"""


def test_only_new_objects_are_searched_for_cycles() -> None:
    """Existing objects are exempt from garbage collection, and new cycles are still collected."""
    done = subprocess.run(
        [sys.executable, "-c", KEPT], capture_output=True, text=True, check=True, timeout=60
    )
    looked_at, is_collected = done.stdout.split()
    assert int(looked_at) < 100
    assert is_collected == "True"
