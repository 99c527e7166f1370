"""The commands `xyro identity make` and `xyro identity show`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.options import as_json_too, settings_of, with_data

if TYPE_CHECKING:
    from xyro.configs.schema import Settings

with_config = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    multiple=True,
    help="Settings (TOML); may be repeated, later files win.",
)


class _Making(click.Group):
    """`xyro identity` alone is `xyro identity make`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["make", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Making, short_help="Make or show the key that proves who the crawler is.")
def identity() -> None:
    """Make or show the crawler's identity: its key, the key's directory, and a page for people.

    [identity] sign decides which requests are signed. `xyro identity` alone is `xyro identity make`.
    """


@identity.command("make")
@with_data
@with_config
@click.option("--agent", default=None, metavar="URL", help="Where the key directory will be: https://bot.example.org.")
@click.option("--contact", default=None, help="Your mail address or web page, for the bot page.")
@click.option(
    "--user-agent", default=None, metavar="NAME", help="Name that sites are told and robots.txt is matched with [Xyro]."
)
@click.option("--key", default=None, metavar="FILE", help="The private key; made if missing [DIR/key.pem].")
@click.option(
    "-o",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("xyro-identity"),
    metavar="DIR",
    help="The folder to write [./xyro-identity].",
)
def make(data: Path | None, folder: Path, **chosen: Any) -> None:
    """Make a key, its directory and a bot page, in a folder for a web server; say what to do with them.

    An existing key or page is left as it is; the directory is signed again, for a year.
    """
    from xyro.plugins.identity.identity_files import lines, write_identity
    from xyro.wire.clock import SystemClock

    settings = _settings(data, chosen, identity__sign="never")  # nothing is signed by this
    written = write_identity(settings, folder, SystemClock().time())
    for line in lines(written, settings.identity.agent, settings.fetch.contact):
        click.echo(line)


@identity.command("show")
@with_data
@with_config
@as_json_too
def show(data: Path | None, as_json: bool, **chosen: Any) -> None:
    """Show who the crawler says it is: User-Agent, contact, purposes, whether it signs, by which key."""
    from xyro.plugins.identity.identity_files import describe

    found = describe(_settings(data, chosen))
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, value in found.items():
        click.echo(f"{name:<11}{', '.join(value) if isinstance(value, list) else value or 'none'}")


def _settings(data: Path | None, chosen: dict[str, Any], **overrides: Any) -> Settings:
    names = {"agent": "identity__agent", "key": "identity__key", "contact": "fetch__contact",
             "user_agent": "fetch__user_agent"}  # fmt: skip
    asked = {setting: chosen[name] for name, setting in names.items() if name in chosen}
    return settings_of(data, chosen["config"], **asked, **overrides)[1]
