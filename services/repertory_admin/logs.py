"""The log of a command, on stderr."""

import logging

from repertory.system import logs


def is_verbose() -> bool:
    """Whether ``--verbose`` was given."""
    return logging.getLogger("repertory").isEnabledFor(logging.DEBUG)


def begin(verbose: bool) -> None:
    """Log to stderr; without ``verbose``, log nothing."""
    if not verbose:
        logging.getLogger().addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logs.DebugLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for package in logs.PACKAGES:
        logging.getLogger(package).setLevel(logging.DEBUG)
