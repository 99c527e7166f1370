"""From [[sites]] and [fetch] to what requests have, and go through. Secrets are looked up here, at the start."""

from __future__ import annotations

from xyro.configs.schema import SecretSource, Settings, SiteTable
from xyro.guard import Guard
from xyro.proxy import parse_proxy
from xyro.service.node.guard_factory import guard_of
from xyro.site_entries import Proxy, SiteEntry, SiteOptions, basic, secret
from xyro.wire.errors import InputError


def site_options(settings: Settings) -> SiteOptions:
    """The entries of the settings. InputError: a secret is not where they say, or --only-net forbids a proxy."""
    fetch, guard = settings.fetch, guard_of(settings.fetch)
    pairs = (line.partition(":") for line in fetch.headers)
    every = {_name(name): value.strip() for name, _, value in pairs}
    proxy = _proxy(fetch.proxy, settings, guard, "settings: [fetch] proxy")
    if fetch.proxy_resolves and guard.only_net:
        raise InputError(
            "settings: [fetch] proxy_resolves: the proxy would contact what it likes: not with --only-net; leave one"
        )
    sites = (_site(number, table, settings, guard) for number, table in enumerate(settings.sites, start=1))
    return SiteOptions(tuple(sites), every, proxy)


def _site(number: int, table: SiteTable, settings: Settings, guard: Guard) -> SiteEntry:
    place = f"settings: [[sites]] number {number}:"
    headers = {_name(name): _text(value, f"{place} headers {name}") for name, value in table.headers.items()}
    if table.cookies:
        pairs = (f"{name}={_text(value, f'{place} cookies {name}')}" for name, value in table.cookies.items())
        headers["Cookie"] = "; ".join(pairs)
    if table.auth is not None:
        headers["Authorization"] = basic(_text(table.auth, f"{place} auth"), f"{place} auth")
    proxy = _proxy(table.proxy or "", settings, guard, f"{place} proxy")
    return SiteEntry(table.host, headers, table.delay, table.signature, table.proxy is not None, proxy)


def _proxy(url: str, settings: Settings, guard: Guard, place: str) -> Proxy | None:
    """The proxy at a URL; [fetch] proxy_auth is for that of [fetch] alone."""
    if not url:
        return None
    login = ""
    if settings.fetch.proxy_auth is not None and url == settings.fetch.proxy:
        login = basic(_text(settings.fetch.proxy_auth, "settings: [fetch] proxy_auth"), "settings: [fetch] proxy_auth")
    return parse_proxy(url, login, settings.fetch.proxy_resolves, guard, place)


def _name(name: str) -> str:
    """A header's name; that of the one header of every request that may be another here, as it is written there."""
    return "Accept" if name.lower() == "accept" else name


def _text(value: str | SecretSource, place: str) -> str:
    return value if isinstance(value, str) else secret(value.env, value.file, place)
