"""A function that agents are handed: its definition, and what it does to a backend."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from repertory.backend import Backend
from repertory.errors import UsageError

LONGEST_MESSAGE = 300  # characters


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """One function.

    Attributes:
        name: What it is called by, as its contract has it.
        title: What a person calls it.
        description: What it does, for a model that chooses among functions.
        parameters: The JSON Schema of its arguments, an object.
        returns: The JSON Schema of its result, where that is an object; None for a string.
        writes: Whether it changes something, which takes the scope ``call``.
        run: Does it; the arguments have been checked. What goes wrong is a ``RepertoryError``.
    """

    name: str
    title: str
    description: str
    parameters: dict[str, Any]
    returns: dict[str, Any] | None = None
    writes: bool = False
    run: Callable[[Backend, Mapping[str, Any]], Any]

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
        """Check arguments and do it.

        Raises:
            UsageError: The arguments do not fit ``parameters``.
            RepertoryError: It failed; the message says why.
        """
        fault = best_match(Draft202012Validator(self.parameters).iter_errors(arguments))
        if fault is not None:
            where = "".join(f"{part}: " for part in fault.absolute_path)
            message = fault.message
            if len(message) > LONGEST_MESSAGE:  # it quotes the value and then says what is wrong
                message = f"{message[:100]} … {message[-100:]}"
            raise UsageError(f"{self.name}: {where}{message}.")
        return self.run(backend, arguments)  # type: ignore[arg-type]  # parameters is an object's
