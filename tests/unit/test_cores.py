"""The number of cores that a process may use."""

import os
from pathlib import Path

import pytest

from repertory.embedding import device
from repertory.embedding.device import cores


@pytest.mark.parametrize(
    ("limit", "number"),
    [
        ("200000 100000", 2),
        ("150000 100000", 2),  # rounded up
        ("50000 100000", 1),
        ("6400000 100000", 8),
        ("max 100000", 8),
        ("nonsense", 8),
        ("0 0", 8),
    ],
)
@pytest.mark.parametrize("own", ["", "system.slice/repertory.service"])
def test_the_limit_of_a_container_counts(
    limit: str, number: int, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a process with two cores on a large machine starts dozens of threads."""
    (tmp_path / "cgroup").write_text(f"4:memory:/other\n0::/{own}\n")
    (tmp_path / own).mkdir(parents=True, exist_ok=True)
    (tmp_path / own / "cpu.max").write_text(f"{limit}\n")
    monkeypatch.setattr(device, "_PROCESS", tmp_path)
    monkeypatch.setattr(device, "_CGROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert cores() == number


def test_without_cgroups_all_available_cores_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Linux has them."""
    monkeypatch.setattr(device, "_PROCESS", tmp_path / "missing")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert cores() == 3
