"""What the command line writes to a terminal."""

import pytest

from repertory_admin import terminal


def test_a_long_value_is_wrapped_beside_its_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word is cut at the edge of a terminal; a pipe gets one line a fact."""
    facts = {"reason": "lowered; " + "when not to use it " * 3, "cosine": "0.5"}
    terminal.show_facts(facts, indent=2)
    assert len(capsys.readouterr().out.splitlines()) == 2

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    terminal.show_facts(facts, indent=2)
    assert capsys.readouterr().out.splitlines() == [
        "  reason  lowered; when not to use it",
        "          when not to use it when not to",
        "          use it",
        "  cosine  0.5",
    ]
