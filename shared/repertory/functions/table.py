"""All functions, by name."""

from repertory.functions import discovery, project, vector
from repertory.functions.function import Function

_ALL: tuple[Function, ...] = (
    vector.SEARCH_SKILLS,
    vector.VECTOR_UPDATE,
    discovery.SEARCH,
    project.SEARCH,
)

FUNCTIONS = {function.name: function for function in _ALL}
