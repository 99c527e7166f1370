"""From [[sites]] and [fetch] headers to what requests have. Secrets are looked up here, at the start."""

from __future__ import annotations

from xyro.configs.schema import SecretSource, Settings, SiteTable
from xyro.site_entries import SiteEntry, SiteOptions, basic, secret


def site_options(settings: Settings) -> SiteOptions:
    """The entries of the settings. InputError: a secret is not where they say."""
    pairs = (line.partition(":") for line in settings.fetch.headers)
    every = {_name(name): value.strip() for name, _, value in pairs}
    return SiteOptions(tuple(map(_site, range(1, 1 + len(settings.sites)), settings.sites)), every)


def _site(number: int, table: SiteTable) -> SiteEntry:
    place = f"settings: [[sites]] number {number}:"
    headers = {_name(name): _text(value, f"{place} headers {name}") for name, value in table.headers.items()}
    if table.cookies:
        pairs = (f"{name}={_text(value, f'{place} cookies {name}')}" for name, value in table.cookies.items())
        headers["Cookie"] = "; ".join(pairs)
    if table.auth is not None:
        headers["Authorization"] = basic(_text(table.auth, f"{place} auth"), f"{place} auth")
    return SiteEntry(table.host, headers, table.delay, table.signature)


def _name(name: str) -> str:
    """A header's name; that of the one header of every request that may be another here, as it is written there."""
    return "Accept" if name.lower() == "accept" else name


def _text(value: str | SecretSource, place: str) -> str:
    return value if isinstance(value, str) else secret(value.env, value.file, place)
