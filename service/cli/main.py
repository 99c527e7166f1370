"""The command `xyro`: options in, one of the other files of this folder does the work (`__init__.py` lists them).

Heavy modules are imported where they are used, so that `xyro --help` and `xyro submit` start at once. Exit codes:
0 done; 1 done, but not all is well (a URL was refused, an invariant does not hold); 2 bad input: one line on standard
error, nothing changed; 3 this machine failed (disk, memory, a process that hangs); 4 a crawl whose seeds were all
tried, and none gave a page.
"""

from __future__ import annotations

import errno
import importlib
import logging
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from xyro import VERSION
from xyro.service.cli.options import tell
from xyro.wire.errors import InputError, XyroError
from xyro.wire.text import printable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

BAD_INPUT, MACHINE = 2, 3
FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))
"""what a disk fails with"""
COMMANDS = {
    "crawl": "xyro.service.cli.crawl_commands.crawl",
    "serve": "xyro.service.cli.crawl_commands.serve",
    "hub": "xyro.service.cli.hub_command.hub",
    "cluster": "xyro.service.cli.cluster_command.cluster",
    "submit": "xyro.service.cli.daemon_commands.submit",
    "status": "xyro.service.cli.view_commands.status",
    "dashboard": "xyro.service.cli.dashboard_command.dashboard",
    "top": "xyro.service.cli.view_commands.top",
    "why": "xyro.service.cli.view_commands.why",
    "hosts": "xyro.service.cli.view_commands.hosts",
    "plan": "xyro.service.cli.plan_command.plan",
    "export": "xyro.service.cli.view_commands.export",
    "changes": "xyro.service.cli.changes_command.changes",
    "rank": "xyro.service.cli.rank_command.rank",
    "log": "xyro.service.cli.daemon_life_commands.log_command",
    "audit": "xyro.service.cli.view_commands.audit",
    "backup": "xyro.service.cli.backup_command.backup",
    "migrate": "xyro.service.cli.migrate_command.migrate",
    "repair": "xyro.service.cli.migrate_command.repair",
    "identity": "xyro.service.cli.identity_command.identity",
    "xml": "xyro.service.cli.xml_commands.xml",
    "page": "xyro.service.cli.page_commands.page",
    "pause": "xyro.service.cli.daemon_commands.pause",
    "resume": "xyro.service.cli.daemon_commands.resume",
    "block": "xyro.service.cli.daemon_commands.block",
    "publish": "xyro.service.cli.publish_commands.publish",
    "subscribe": "xyro.service.cli.publish_commands.subscribe",
    "subscriptions": "xyro.service.cli.publish_commands.subscriptions",
    "unsubscribe": "xyro.service.cli.publish_commands.unsubscribe",
    "stop": "xyro.service.cli.daemon_life_commands.stop",
    "completion": "xyro.service.cli.daemon_life_commands.completion",
}
"""command -> where it is defined; a module is loaded when one of its commands is asked for"""


# numpy's OpenBLAS starts a thread for each core when it is loaded, and each spins for a tenth of a second: our products
# are small. Child processes inherit it.
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")


class _Main(click.Group):
    """Every error is one line that names the place and the mend, and an exit code."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        os.environ.setdefault(*_ONE_THREAD)
        try:
            code = super().main(*args, **{"prog_name": "xyro", **options, "standalone_mode": False})
            sys.exit(code if isinstance(code, int) else 0)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(0)
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "xyro"
            if isinstance(error, click.NoSuchOption) and error.option_name == "--join":
                _fail(f"{command}: is of one directory, not of a cluster; name that of a node with --data", BAD_INPUT)
            message = error.format_message().rstrip(".")
            mark = "" if message.endswith("?") else ";"
            _fail(f"{message}{mark} see `{command} --help`", BAD_INPUT)
        except click.ClickException as error:
            _fail(error.format_message(), BAD_INPUT)
        except InputError as error:
            _fail(str(error), BAD_INPUT)
        except XyroError as error:
            _fail(str(error), MACHINE)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(130)
        except OSError as error:  # what knows its file has told it by now: this is standard output
            if error.errno not in FULL:
                raise
            _close_output()  # nor may the flush at the exit fail
            _fail(f"{error.filename or 'standard output'}: {error.strerror}: free or mend the disk", MACHINE)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*sorted(COMMANDS), *(found.name for found in _installed())]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            return _load(name)
        found = next((found.load() for found in _installed() if found.name == name), None)
        return found if isinstance(found, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:  # click compares a misspelt one with all that the group has
            self.commands = {name: _load(name) for name in COMMANDS}
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `xyro export pages | head`: it has seen enough (click would exit with 1)
            _close_output()
            ctx.exit(0)


def _load(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name].rpartition(".")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


def _installed() -> EntryPoints:
    """Commands that installed packages add: entry points of the group `xyro.commands` (`lab` is one)."""
    from importlib.metadata import entry_points  # 20 ms, which no command of ours needs

    return entry_points(group="xyro.commands")


def _close_output() -> None:
    """Discard everything that is written to standard output from here on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(text: str, code: int) -> NoReturn:
    tell(f"xyro: {printable(text, 2000)}", err=True, level=logging.ERROR, event="failed", code=code)
    sys.exit(code)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"xyro {VERSION}")
        ctx.exit()


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
def main() -> None:
    """A continuous web crawler that knows which pages matter and which have gone stale.

    Begin with `xyro lab demo`, or with `xyro crawl URL --contact YOUR-MAIL`. Every command works on the data directory
    that --data names, by default ./xyro-data, whether or not a process is crawling there.
    """


if __name__ == "__main__":
    main()
