"""What the search form asks for, read from an address and written to one."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from fastapi import Depends
from fastapi import Query as Parameter
from pydantic import BeforeValidator

from repertory.index.vectors import Filter
from repertory.search.query import Query, Weights
from repertory.settings import Values
from repertory_query.schemas import MOST_HITS
from repertory_query.searching import Filters, Kinds, filtered

LIMIT = 10  # people see more at a glance than a program asks for


def _given(value: object) -> object:
    return None if value == "" else value  # forms send empty fields, too


Limit = Annotated[int | None, Parameter(ge=1, le=MOST_HITS), BeforeValidator(_given)]
Share = Annotated[float | None, Parameter(ge=0, le=1), BeforeValidator(_given)]


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A filled form; None and empty stand for what was left out."""

    q: str = ""
    where: Filter = Filter()
    limit: int | None = None
    threshold: float | None = None
    alpha: float | None = None

    def query(self, defaults: Values) -> Query:
        """The search that it asks for."""
        return Query(
            text=self.q,
            limit=self.limit or LIMIT,
            threshold=defaults.threshold if self.threshold is None else self.threshold,
            weights=Weights(
                alpha=defaults.alpha if self.alpha is None else self.alpha,
                name_weight=defaults.name_weight,
                section_weight=defaults.section_weight,
            ),
            where=self.where,
        )

    def chosen(self, field: str) -> Sequence[str]:
        """The values that are chosen of ``kind``, ``source``, ``server`` or ``tag``."""
        values: Sequence[str] = getattr(self.where, f"{field}s")
        return values

    def address(self, base: str = "/", **others: object) -> str:
        """The address of the same form with other values, for whoever it is sent to."""
        form = msgspec.structs.replace(self, **others)
        fields = {
            "q": form.q.strip(),
            **{name: form.chosen(name) for name in ("kind", "source", "server", "tag")},
            "limit": form.limit,
            "threshold": form.threshold,
            "alpha": form.alpha,
        }
        given = {name: value for name, value in fields.items() if value not in (None, "", ())}
        text = urlencode(given, doseq=True, errors="replace")
        return f"{base}?{text}" if text else base


def _read(
    q: str = "",
    kind: Kinds = [],  # noqa: B006 - FastAPI's way to say that there need be none
    source: Filters = [],  # noqa: B006 - likewise
    server: Filters = [],  # noqa: B006 - likewise
    tag: Filters = [],  # noqa: B006 - likewise
    limit: Limit = None,
    threshold: Share = None,
    alpha: Share = None,
) -> Form:
    where = filtered(kind, source, server, tag)
    return Form(q=q, where=where, limit=limit, threshold=threshold, alpha=alpha)


Asked = Annotated[Form, Depends(_read)]
