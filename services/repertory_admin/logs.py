"""The log of one command, on stderr."""

import logging

from repertory.logs import Lines


def is_verbose() -> bool:
    """Whether ``--verbose`` was given."""
    return logging.getLogger("repertory").isEnabledFor(logging.DEBUG)


def begin(verbose: bool) -> None:
    """Log to stderr; without ``verbose``, log nothing."""
    if not verbose:
        logging.getLogger().addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("repertory").setLevel(logging.DEBUG)
