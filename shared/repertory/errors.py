"""Every error that Repertory raises on purpose.

RepertoryError
├── UsageError            the caller asked for something that cannot be
│   ├── ConfigurationError    a setting, a configuration file or an MCP configuration
│   ├── UnknownItemError      no item of that id
│   ├── CallsOffError         calling tools is not switched on, or not allowed to this caller
│   └── ArgumentsError        arguments do not fit a tool's schema
├── CallError             the server of a tool failed a call
│   └── CallTimeoutError      it did not answer in time
├── SourceError           a source could not be read at all; its items are kept
├── JobError              a job cannot be read
├── ModelError            a model cannot be had, loaded or used
│   └── WeightsUnavailableError   neither path, cache, hub nor package has the weights
└── StoreError            the data directory or the vector store cannot be used
    ├── NothingIndexedError   there is no index yet
    ├── StoreBusyError        another process holds it
    └── StoreCorruptError     what is stored cannot be read back

Each message is one sentence that names what is wrong (file, line, item or setting) and what to do
about it. Third-party errors are translated once, where they are met, with ``from``.
"""


class RepertoryError(Exception):
    """Something went wrong that the message explains to a user."""


class UsageError(RepertoryError):
    """The caller asked for something that cannot be."""


class ConfigurationError(UsageError):
    """A setting or a configuration file is wrong; the message names it and the line where known."""


class UnknownItemError(UsageError):
    """There is no item of that id."""


class CallsOffError(UsageError):
    """Calling tools is not switched on here, or not allowed to whoever asked."""


class ArgumentsError(UsageError):
    """The arguments of a call do not fit the schema of the tool; nothing was sent to its server."""


class CallError(RepertoryError):
    """The server of a tool could not be reached, or failed, or answered what is no result."""


class CallTimeoutError(CallError):
    """The server of a tool did not answer a call in time."""


class SourceError(RepertoryError):
    """A source could not be read at all; what it offered before is kept."""


class JobError(RepertoryError):
    """A job cannot be read; it is put aside, never dropped."""


class ModelError(RepertoryError):
    """An embedding model cannot be had, loaded or used."""


class WeightsUnavailableError(ModelError):
    """The weights of a model are not to be had from any place they may come from."""


class StoreError(RepertoryError):
    """The data directory or the vector store cannot be used."""


class NothingIndexedError(StoreError):
    """There is no index yet: it has to be built first, or is being built."""


class StoreBusyError(StoreError):
    """Another process holds the store; the message names it."""


class StoreCorruptError(StoreError):
    """What is stored cannot be read back; the message says where it was put aside."""
