"""Detects file systems that report no changes, so that folders on them have to be polled."""

import re
from pathlib import Path

import msgspec

MOUNTS = Path("/proc/self/mountinfo")

# Other machines write to these without this system's knowledge: network file systems, and folders
# shared between a virtual machine and its host. Types like ``fuse.…`` count as well: Docker
# Desktop, sshfs, rclone.
SILENT = frozenset(
    {"9p", "afs", "ceph", "cifs", "drvfs", "fakeowner", "fuse", "gfs2", "lustre", "ncpfs", "nfs"}
    | {"nfs4", "ocfs2", "prl_fs", "smb", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
)

_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mount(msgspec.Struct, frozen=True):
    """One mounted file system: its mount point and its type."""

    place: str
    type: str

    @property
    def is_silent(self) -> bool:
        """Whether changes in it may go unreported."""
        return self.type in SILENT or self.type.startswith("fuse.")


def mounts(file: Path = MOUNTS) -> list[Mount]:
    """List the mounts, of which later ones cover earlier ones; empty if the system has no list."""
    try:
        text = file.read_text("utf-8", "surrogateescape")
    except OSError:
        return []
    return [mount for line in text.splitlines() if (mount := _parse(line))]


def silent_type(folder: str, mounted: list[Mount]) -> str:
    """The type of a silent file system that contains a resolved folder or is mounted below it.

    Empty if there is no such file system.
    """
    above = [mount for mount in mounted if _holds(mount.place, folder)]
    own = max(reversed(above), key=lambda mount: len(mount.place), default=None)
    below = {mount.place: mount for mount in mounted if _holds(folder, mount.place)}
    return next((one.type for one in (own, *below.values()) if one and one.is_silent), "")


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _parse(line: str) -> Mount | None:
    """Parse a line: field 5 is the mount point, and the first field after a lone dash the type."""
    fields, dash, rest = line.partition(" - ")
    parts, types = fields.split(" "), rest.split(" ")
    if not dash or len(parts) < 5 or not types[0]:
        return None
    place = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), parts[4])
    return Mount(place, types[0])
