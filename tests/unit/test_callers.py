"""Who searched: names of keys, and a bounded number of them."""

from repertory_query.callers import MAX_NAMES, OTHERS, Callers


def test_only_keys_have_names() -> None:
    """People and addresses are counted together: there may be any number, and they are private."""
    callers = Callers()
    for who in ("key:ci", "key:ci", "user:anna", "user:ben", "address:192.0.2.1", "", "owner"):
        callers.note(who)
    assert callers.searches() == {"key:ci": 2, "people": 2, "anonymous": 2, "owner": 1}


def test_the_number_of_names_is_bounded() -> None:
    """Further keys are counted together, and known ones by themselves as before."""
    callers = Callers()
    for number in range(MAX_NAMES + 5):
        callers.note(f"key:{number}")
    callers.note("key:0")
    found = callers.searches()
    assert len(found) == MAX_NAMES + 1
    assert (found["key:0"], found[OTHERS]) == (2, 5)
