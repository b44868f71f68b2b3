"""Every error that Repertory raises on purpose.

Each message is one sentence that names the fault (file, line, item or setting) and the remedy.
Third-party errors are translated once, where they occur, with ``from``.
"""

BEGINNING, END = 1_500, 500  # characters of a long message that are kept


class RepertoryError(Exception):
    """An error whose message explains it to a user.

    The middle of a long message is left out, because it may quote untrusted text.
    """

    def __init__(self, message: str = "") -> None:
        if len(message) > BEGINNING + END:
            message = f"{message[:BEGINNING]} … {message[-END:]}"
        super().__init__(message)


class UsageError(RepertoryError):
    """The caller's request is invalid."""


class ConfigurationError(UsageError):
    """A setting or a configuration file is wrong; the message names it, and the line if known."""


class UnknownItemError(UsageError):
    """No item has that id."""


class UnknownFilterError(UsageError):
    """A filter names a source, server or tag that the index does not have."""


class CallsOffError(UsageError):
    """Calling tools is switched off here, or not allowed for this caller."""


class ArgumentsError(UsageError):
    """The arguments of a call do not fit the schema of the tool; nothing was sent to its server."""


class CallError(RepertoryError):
    """The tool's server was unreachable, failed, or returned an invalid result."""


class CallTimeoutError(CallError):
    """The server of a tool did not answer a call in time."""


class SourceError(RepertoryError):
    """A source could not be read at all; its items are kept."""


class SignInError(SourceError):
    """A server asks for a sign-in that only a person can make."""


class InputNeededError(SourceError):
    """A server needs a value that only its user can give, such as a password."""


class JobError(RepertoryError):
    """A job cannot be read; it is set aside, not dropped."""


class NewerReleaseError(JobError):
    """A newer release made the job or its collection; its workers will process the job."""


class ModelError(RepertoryError):
    """An embedding model cannot be found, loaded or used."""


class WeightsUnavailableError(ModelError):
    """The weights of a model are in no path, cache, hub or package."""


class DeviceUnavailableError(ModelError):
    """A GPU was requested, but no installed engine can use one."""


class StoreError(RepertoryError):
    """The data directory or the vector store cannot be used."""


class NothingIndexedError(StoreError):
    """The index does not exist yet: it must be built first, or is being built."""


class StoreBusyError(StoreError):
    """Another process holds the store; the message names it."""


class StoreRefusedError(StoreError):
    """The store rejected a request as invalid; a retry would not help."""


class StoreCorruptError(StoreError):
    """Stored data cannot be read; the message says where it was moved."""
