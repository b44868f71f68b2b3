"""A function offered to agents: its definition and its implementation on a backend."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Self

import msgspec

from repertory.backend import Backend
from repertory.calling.arguments import as_json
from repertory.calling.faults import faults
from repertory.errors import UsageError

_WRITING = ("call", "update")  # actions


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """One function.

    Attributes:
        name: Its name in the contract, or the portable one.
        title: Its name for people.
        description: What it does, for models that choose functions.
        parameters: The JSON Schema of its arguments, an object.
        returns: The JSON Schema of its result if that is an object; None for a string.
        action: Its action in the audit log.
        subject: The argument with the id of an item, for the audit log; empty without one.
        error_is_result: Whether its contract has a result for errors: ``{"error": message}``.
        run: The implementation, called with validated arguments; raises ``RepertoryError``.
    """

    name: str
    title: str
    description: str
    parameters: dict[str, Any]
    returns: dict[str, Any] | None = None
    action: str = "search"
    subject: str = ""
    error_is_result: bool = False
    run: Callable[[Backend, Mapping[str, Any]], Any]

    @property
    def writes(self) -> bool:
        """Whether it changes data, which needs the scope ``call``."""
        return self.action in _WRITING

    def portable(self) -> Self:
        """The function under a name that every model API accepts, like ``Vector_SearchSkills``."""
        return msgspec.structs.replace(self, name=re.sub(r"[^a-zA-Z0-9_-]", "_", self.name))

    def definition(self) -> dict[str, Any]:
        """The definition in the form that function-calling models take."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            },
        }

    def call(self, backend: Backend, arguments: object) -> Any:  # noqa: ANN401 - plain JSON
        """Validate the arguments and run the function.

        Raises:
            UsageError: The arguments are not a JSON object or do not match ``parameters``.
            RepertoryError: The function failed; the message says why.
        """
        if not isinstance(arguments, Mapping):
            raise UsageError(f"{self.name} takes its arguments by name; give an object of them.")
        if wrong := faults(dict(arguments), self.parameters):
            raise UsageError(f"{self.name}: {'; '.join(wrong)}.")
        return self.run(backend, as_json(arguments))
