"""The check of the sign-in without a key."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from repertory.errors import ConfigurationError
from repertory.system.addresses import is_loopback
from repertory.text import counted
from repertory.values import Values
from repertory_admin.checks.finding import Finding, State
from repertory_query.sign_in.failures import ProviderError
from repertory_query.sign_in.people import people_of

if TYPE_CHECKING:
    from repertory_query.sign_in.openid import OpenId


def sign_in(values: Values) -> Iterator[Finding]:
    """Whether the settings are consistent and the provider answers; empty without a sign-in.

    Args:
        values: The settings.
    """
    try:
        people = people_of(values)
    except ConfigurationError as error:
        yield Finding(State.BAD, "sign-in", str(error))
        return
    if people and people.openid:
        yield from _provider(people.openid, values)
    if values.proxy_addresses:
        header, groups = values.proxy_user_header, values.proxy_groups_header
        text = f"{values.proxy_addresses} may name people in {header}, and groups in {groups}"
        yield Finding(State.GOOD, "proxy", text)


def _provider(openid: "OpenId", values: Values) -> Iterator[Finding]:
    try:
        keys = asyncio.run(openid.provider.keys())
    except ProviderError as error:
        yield Finding(State.BAD, "sign-in", str(error))
        return
    if not keys:
        text = f"{openid.provider.issuer} publishes no key for signatures"
        yield Finding(State.BAD, "sign-in", text)
        return
    known = f"{openid.provider.issuer} answers, with {counted(len(keys), 'key')}"
    text = f"{known}; it must allow the redirect URL {openid.redirect_url()}"
    yield Finding(State.GOOD, "sign-in", text)
    if not values.public_url and not is_loopback(values.host):
        text = f"server.public_url is not set, so browsers come back to {openid.public_url}"
        yield Finding(State.UNSURE, "sign-in", text)
