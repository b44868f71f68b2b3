"""Executes a plan: checks that the file is unchanged, replaces it atomically, keeps a backup."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from repertory.agent_hosts.host import Scope
from repertory.agent_hosts.plan import Plan, Target, read
from repertory.agent_hosts.records import Record, Records, backup_of
from repertory.errors import StoreError, UsageError
from repertory.system.files import PRIVATE, flush_to_disk, make_private, replacing
from repertory.trust import digest_of

_SHARED = 0o666  # permissions of a new project file, before the umask


def connect(plan: Plan, records: Records) -> Path | None:
    """Write a configuration with our entry. Links are followed, and permissions are kept.

    Returns:
        The path of the backup; None if there was no file before.

    Raises:
        UsageError: The file has changed since the plan was made.
        StoreError: It cannot be written.
    """
    file = plan.target.file
    backup = None
    with _writing(plan, records):
        earlier = records.of(file)
        made = [str(folder) for folder in _missing(_real(file).parent)]
        if plan.before is None:
            made = made or (earlier.made if earlier else [])
        else:
            backup = backup_of(file)
            _write(backup, plan.before, plan.target)
        for folder in made:
            Path(folder).mkdir(exist_ok=True)
        _write(_real(file), plan.after or b"", plan.target)
        before = "" if plan.before is None else digest_of(plan.before)
        records.keep(Record(str(file), before, digest_of(plan.after or b""), made))
    return backup


def undo(plan: Plan, records: Records) -> None:
    """Write a configuration without our entry, or remove the file if Repertory created it.

    The backup is removed if the original bytes are restored; otherwise it is kept.

    Raises:
        UsageError: The file has changed since the plan was made.
        StoreError: It cannot be written.
    """
    file = plan.target.file
    with _writing(plan, records):
        record = records.of(file)
        if plan.after is None:
            _real(file).unlink()
            for folder in reversed(record.made if record else []):
                with contextlib.suppress(OSError):  # the folder has other files now
                    Path(folder).rmdir()
        else:
            _write(_real(file), plan.after, plan.target)
        if plan.is_exact:
            backup_of(file).unlink(missing_ok=True)
        records.drop(file)


@contextlib.contextmanager
def _writing(plan: Plan, records: Records) -> Iterator[None]:
    """Lock out other Repertory commands, and check that the file is as the plan expects."""
    file = plan.target.file
    try:
        make_private(records.folder)
        with FileLock(records.folder / "lock", mode=PRIVATE):
            if read(plan.target) != plan.current:
                raise UsageError(
                    f"{file} has changed in the meantime; nothing was written. Run it again."
                )
            yield
    except OSError as error:
        name = error.filename or file  # may be in the data directory
        raise StoreError(f"{name} cannot be written: {error.strerror}.") from error


def _write(path: Path, data: bytes, target: Target) -> None:
    """Replace a file atomically. It gets the permissions of the configuration, if that exists.

    It also gets the owner of the configuration if possible. A new file of a project is shared; any
    other new file is private.
    """
    configuration = _real(target.file)
    is_new = not configuration.exists()
    mode = _SHARED if is_new and target.scope is Scope.PROJECT else PRIVATE
    with replacing(path, mode=mode) as file:
        file.write(data)
        flush_to_disk(file)
        if not is_new:
            status = configuration.stat()
            if os.name != "nt":
                with contextlib.suppress(PermissionError):  # the file belongs to another user
                    os.chown(file.name, status.st_uid, status.st_gid)
            Path(file.name).chmod(stat.S_IMODE(status.st_mode))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _missing(folder: Path) -> list[Path]:
    """The missing folders of a path, the outermost first."""
    missing: list[Path] = []
    while not folder.exists():
        missing.insert(0, folder)
        folder = folder.parent
    return missing
