"""Recognising file systems that report no changes from the list of mounts."""

from pathlib import Path

import pytest

from repertory_watch.filesystems import mounts, silent_type

MOUNTINFO = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /srv/team rw - nfs4 server:/export rw
31 30 0:41 / /srv/team/local rw master:2 propagate_from:1 - tmpfs tmpfs rw
32 22 0:42 / /mnt/with\040space rw - fuse.sshfs user@host rw
33 22 0:43 / /data rw - 9p share rw
34 22 254:1 / /data rw - xfs /dev/vdb rw
35 22 0:44 / /project/deep/share rw - virtiofs host rw
a line that is none
36 22 0:45 / /cut
"""


@pytest.mark.parametrize(
    ("folder", "silent"),
    [
        ("/home/me", ""),
        ("/srv/team/skills", "nfs4"),
        ("/srv/teams", ""),
        ("/srv/team/local/skills", ""),
        ("/mnt/with space/skills", "fuse.sshfs"),
        ("/data/skills", ""),  # the later mount hides the earlier
        ("/project", "virtiofs"),  # a folder below it is on a silent file system
        ("/project/deep/share", "virtiofs"),
        ("/cut", ""),
    ],
)
def test_a_folder_is_as_silent_as_its_file_system(tmp_path: Path, folder: str, silent: str) -> None:
    """The innermost mount above a folder and the mounts below it count; broken lines do not."""
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTINFO)
    assert silent_type(folder, mounts(file)) == silent


def test_without_a_list_of_mounts_no_folder_is_silent(tmp_path: Path) -> None:
    """Only Linux has this file."""
    assert mounts(tmp_path / "missing") == []
    assert silent_type("/anywhere", []) == ""
