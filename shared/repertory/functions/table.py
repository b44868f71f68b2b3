"""All functions, by the names of their contracts and by portable names."""

from repertory.functions import discovery, project, vector
from repertory.functions.function import Function

_ALL: tuple[Function, ...] = (
    vector.SEARCH_SKILLS,
    vector.VECTOR_UPDATE,
    discovery.SEARCH,
    project.SEARCH,
)

FUNCTIONS = {function.name: function for function in _ALL}
PORTABLE = {function.name: function for function in (one.portable() for one in _ALL)}
