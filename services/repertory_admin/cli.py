"""The command line (being built)."""


def cli() -> None:
    """Run the command line."""
