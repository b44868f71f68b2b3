"""``python -m repertory_admin``: the command line without its entry point."""

from repertory_admin.cli import cli

cli()
