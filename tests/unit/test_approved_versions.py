"""Which version of an item an approval on the command line applies to."""

import pytest

from repertory_admin.commands.trust import as_shown

SHOWN = ["notes/add@5f1d7a84c2e9", "src/\u00e9@0123456789ab"]


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("notes/add", SHOWN[0]),
        (SHOWN[0], SHOWN[0]),
        ("src/\u00e9", SHOWN[1]),
        ("src/e\u0301", SHOWN[1]),
        ("src/e\u0301@0123456789ab", SHOWN[1]),
        ("other", "other"),
        ("notes/add@aaaaaaaaaaaa", "notes/add@aaaaaaaaaaaa"),
    ],
)
def test_an_item_is_approved_as_it_was_shown(typed: str, wanted: str) -> None:
    """Composed and decomposed accents are equal; other items are passed on as typed."""
    assert as_shown([typed], SHOWN) == [wanted]
