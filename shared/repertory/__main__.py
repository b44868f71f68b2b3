"""Starts the command line, as ``python -m repertory``."""

from repertory_admin.__main__ import main

main()
