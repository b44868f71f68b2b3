"""The objects that projects in one process share."""

import gc
import weakref
from pathlib import Path

from repertory.compose import Parts
from repertory.coordination.failures import Failure
from repertory.settings import load
from repertory.shared_objects import SharedObjects


def parts(shared: SharedObjects, directory: Path, data: Path, **flags: str) -> Parts:
    """The parts of a project."""
    directory.mkdir(exist_ok=True)
    return Parts(load({"data_dir": str(data), **flags}, directory, {}), directory, shared=shared)


def test_projects_with_the_same_model_share_its_engine(tmp_path: Path) -> None:
    """Another model or device has its own engine."""
    shared = SharedObjects()
    one = parts(shared, tmp_path / "one", tmp_path / "data")
    two = parts(shared, tmp_path / "two", tmp_path / "data")
    other = parts(shared, tmp_path / "two", tmp_path / "data", model="other")
    device = parts(shared, tmp_path / "two", tmp_path / "data", device="cpu")

    assert one.queries is two.queries
    assert len({id(each.queries) for each in (one, other, device)}) == 3
    assert one.queries is not parts(SharedObjects(), tmp_path / "one", tmp_path / "data").queries


def test_an_engine_ends_with_its_last_project(tmp_path: Path) -> None:
    """No other reference keeps the model in memory."""
    shared = SharedObjects()
    one = parts(shared, tmp_path / "one", tmp_path / "data")
    two = parts(shared, tmp_path / "two", tmp_path / "data")
    engine = weakref.ref(one.queries)
    assert two.queries is engine()

    del one
    gc.collect()
    assert engine() is two.queries
    del two
    gc.collect()
    assert engine() is None


def test_collections_are_shared_but_reports_are_not(tmp_path: Path) -> None:
    """Two projects may use one collection and both follow its changes. Failures belong to one."""
    shared = SharedObjects()
    one = parts(shared, tmp_path / "one", tmp_path / "data")
    two = parts(shared, tmp_path / "two", tmp_path / "data")
    one.coordination.deltas.announce("collection", {"item": "hash"})
    failure = Failure(id="job", collection="collection", items={}, error="", at=0, attempts=1)
    one.coordination.failures.add(failure)
    one.coordination.status.report("watch", {"at": 1.0})

    assert one.store is two.store
    assert two.coordination.deltas.length("collection") == 1
    assert not two.coordination.failures.list()
    assert not two.coordination.status.reports()
