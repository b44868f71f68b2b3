"""Reading workers' reports, including those of other releases."""

from repertory.stats import workers_of


def test_a_worker_report_of_an_unknown_form_is_left_out() -> None:
    """During an upgrade, workers of different releases run side by side."""
    good, other = {"at": 1.0, "jobs": 3}, {"at": "yesterday"}
    found = workers_of({"w2": good, "w1": other, "w3": {**good, "worker": "another"}})
    assert [one.worker for one in found] == ["w2", "w3"]
