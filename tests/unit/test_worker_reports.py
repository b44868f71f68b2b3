"""What workers report, also those of other releases."""

from repertory.stats import workers_of


def test_a_report_of_another_form_is_left_out() -> None:
    """A worker of another release runs beside the others during an upgrade."""
    good, other = {"at": 1.0, "jobs": 3}, {"at": "yesterday"}
    found = workers_of({"w2": good, "w1": other, "w3": {**good, "worker": "another"}})
    assert [one.worker for one in found] == ["w2", "w3"]
