"""The checkpoints of a training that was stopped."""

from pathlib import Path

STATE = "trainer_state.json"  # written last: without it a checkpoint is not whole


def newest(folder: Path) -> Path | None:
    """The newest whole checkpoint of a folder; None if there is no whole one."""
    whole = [file.parent for file in folder.glob(f"checkpoint-*/{STATE}")]
    return max(whole, key=lambda found: int(found.name.rpartition("-")[2]), default=None)
