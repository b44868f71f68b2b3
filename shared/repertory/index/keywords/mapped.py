"""Large arrays in an anonymous file, of which the system keeps only used pages in memory.

Most of a keyword index is postings and entries, and a search reads a small part of them.
"""

import mmap
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64  # bytes; unaligned numbers are slow to read


class MappedArrays:
    """Copies of arrays in a file, which is deleted once nothing refers to it.

    Args:
        folder: Where the file is created.
        arrays: The arrays, of one dimension.

    Attributes:
        arrays: The copies, which are read-only.

    Raises:
        OSError: The file cannot be created or written.
    """

    def __init__(self, folder: Path, arrays: Sequence[NDArray[Any]]) -> None:
        starts = []
        with tempfile.TemporaryFile(dir=folder) as file:
            for array in arrays:
                file.write(bytes(-file.tell() % ALIGNMENT))
                starts.append(file.tell())
                file.write(np.ascontiguousarray(array).data)
            file.flush()
            self._pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.arrays = [
            np.frombuffer(self._pages, array.dtype, len(array), start)
            for array, start in zip(arrays, starts, strict=True)
        ]

    def free_memory(self) -> None:
        """Release the pages from this process's memory; they are loaded again when used."""
        if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            self._pages.madvise(mmap.MADV_DONTNEED)
