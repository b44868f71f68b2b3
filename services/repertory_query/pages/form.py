"""The search form, read from an address and written to one."""

from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from repertory.search.query import Query, query_of
from repertory.settings import Alpha, Threshold, Values
from repertory.wire import MaxLimit
from repertory_query.api import parameters
from repertory_query.searching import Filters

LIMIT = 10  # people see more at a glance than a program asks for
FILTERS = ("kind", "source", "server", "tag")


class Form(Filters, frozen=True, kw_only=True):
    """A filled form; the fields it leaves out are None or empty."""

    q: str = ""
    limit: MaxLimit | None = None
    threshold: Threshold | None = None
    alpha: Alpha | None = None
    part: bool = False

    def query(self, defaults: Values) -> Query:
        """The search that it asks for.

        Raises:
            UsageError: The text is blank or too long.
        """
        return query_of(
            defaults,
            self.q,
            limit=self.limit or LIMIT,
            threshold=self.threshold,
            alpha=self.alpha,
            kinds=self.kind,
            sources=self.source,
            servers=self.server,
            tags=self.tag,
        )

    def chosen(self, field: str) -> Sequence[str]:
        """The chosen values of ``kind``, ``source``, ``server`` or ``tag``."""
        values: Sequence[str] = getattr(self, field)
        return values

    def unfiltered(self) -> str:
        """The address of the same form without filters."""
        return self.address(kind=(), source=(), server=(), tag=())

    def address(self, base: str = "/", **others: object) -> str:
        """The address of the same form with other values."""
        form = msgspec.structs.replace(self, **others)
        fields = {
            "q": form.q.strip(),
            **{name: form.chosen(name) for name in FILTERS},
            "limit": form.limit,
            "threshold": form.threshold,
            "alpha": form.alpha,
        }
        given = {name: value for name, value in fields.items() if value not in (None, "", ())}
        text = urlencode(given, doseq=True, errors="replace")
        return f"{base}?{text}" if text else base


def form_of(request: Request) -> Form:
    """The form in a request's address.

    Raises:
        UsageError: A field is invalid.
    """
    return parameters(request, Form, skip_empty=True)
