"""Large arrays in a file without a name: the system keeps only those pages in memory that are used.

Most of a keyword index is postings and entries, and a search reads a small part of them.
"""

import mmap
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64  # bytes: numbers at odd places would be slow to read


class MappedArrays:
    """Copies of some arrays in a file, which is gone once nothing refers to it.

    Args:
        folder: Where the file is made.
        arrays: The arrays, of one dimension.

    Attributes:
        arrays: The copies, which cannot be written to.

    Raises:
        OSError: The file cannot be made or written.
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

    def rest(self) -> None:
        """Drop the pages from this process; each returns when it is used."""
        if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            self._pages.madvise(mmap.MADV_DONTNEED)
