"""Translates the errors of Qdrant's engine."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from repertory.errors import RepertoryError, StoreBusyError, StoreCorruptError, StoreError

LOCKED = "WouldBlock"  # in the error if the log of a shard is locked

_OS_ERROR = re.compile(r"(?:\(os error|Os \{ code:) (\d+)")  # the second form is from its log
_ENVIRONMENT = {  # errors of the machine, not of the store
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
}


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translate the engine's exceptions.

    The engine raises plain ``Exception`` with a text. The class of its panics derives from
    ``BaseException`` and cannot be imported, so everything is caught here and filtered by type.
    """
    try:
        yield
    except RepertoryError:
        raise
    except OSError as exc:
        reason = exc.strerror or str(exc)[:300]  # ``shutil.Error`` lists several files
        raise StoreError(f"{path} cannot be used: {reason}.") from exc
    except BaseException as exc:
        if not (type(exc) is Exception or type(exc).__name__ == "PanicException"):
            raise
        raise _store_error(exc, path) from exc


def _store_error(exc: BaseException, path: Path) -> StoreError:
    text = str(exc)
    if "Shard is not initialized" in text:
        return StoreError(f"The collection {path.name} has been closed: open it again.")
    if "Vector dimension error" in text:
        return StoreError(f"{path} holds vectors of another length ({text}): rebuild the index.")
    if LOCKED in text:
        return StoreBusyError(f"{path} is in use by a process that hangs at its start: end it.")
    known = [int(number) for number in _OS_ERROR.findall(text)]
    if known and known[-1] in _ENVIRONMENT:
        return StoreError(f"{path} cannot be used: {os.strerror(known[-1])}.")
    return StoreCorruptError(f"{path} cannot be read ({text[:300]}): rebuild the index.")
