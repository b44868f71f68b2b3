"""The checkpoints of an interrupted training."""

from pathlib import Path

STATE = "trainer_state.json"  # written last, so a checkpoint without it is incomplete


def newest(folder: Path) -> Path | None:
    """The newest complete checkpoint in a folder; None if there is no complete one."""
    whole = [file.parent for file in folder.glob(f"checkpoint-*/{STATE}")]
    return max(whole, key=lambda found: int(found.name.rpartition("-")[2]), default=None)
