"""The search form, read from query parameters and written as a URL."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from repertory.index.vectors import Filter
from repertory.search.query import Query
from repertory.values import Values
from repertory_query.api.searching import Parameters, query_from, where_of

LIMIT = 10  # more than the default for programs, because people scan a page quickly


class Form(Parameters, frozen=True, kw_only=True, omit_defaults=True):
    """A filled-in form; missing fields are None or empty.

    Attributes:
        part: Whether to omit the frame of the page.
        page: The page of the catalogue, from 1.
    """

    q: str = ""
    part: bool = False
    page: Annotated[int, Meta(ge=1)] = 1

    @property
    def where(self) -> Filter:
        """The filter."""
        return where_of(self)

    def query(self, defaults: Values) -> Query:
        """The search that it requests; raises as ``query_from``."""
        return query_from(msgspec.structs.replace(self, limit=self.limit or LIMIT), defaults)

    def chosen(self, field: str) -> Sequence[str]:
        """The chosen values of ``kind``, ``source``, ``server`` or ``tag``."""
        values: Sequence[str] = getattr(self, f"{field}s")
        return values

    def unfiltered(self) -> str:
        """The URL of the same form without filters, below the root."""
        return self.address(kinds=(), sources=(), servers=(), tags=())

    def address(self, base: str = "/", **others: object) -> str:
        """The URL of the same form with other values, below the root."""
        plain = {"q": self.q.strip(), "part": False, "page": 1}
        form = msgspec.structs.replace(self, **{**plain, **others})
        fields = {"q": form.q, **msgspec.to_builtins(form)}
        given = {name: value for name, value in fields.items() if value != ""}
        text = urlencode(given, doseq=True, errors="replace")
        return f"{base}?{text}" if text else base
