"""The log of one command, on stderr, each line a static event and its fields."""

import logging

from repertory_admin.terminal import safe

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName"}


def is_verbose() -> bool:
    """Whether ``begin`` was told so."""
    return logging.getLogger("repertory").isEnabledFor(logging.DEBUG)


def begin(verbose: bool) -> None:
    """Log to stderr; without ``verbose``, log nothing."""
    if not verbose:
        logging.getLogger().addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_Fields())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("repertory").setLevel(logging.DEBUG)


class _Fields(logging.Formatter):
    """``level logger event field=value …``."""

    def format(self, record: logging.LogRecord) -> str:
        fields = [f"{k}={v!r}" for k, v in vars(record).items() if k not in _OWN]
        head = f"{record.levelname.lower()} {record.name} {record.getMessage()}"
        return safe(" ".join([head, *fields]))
