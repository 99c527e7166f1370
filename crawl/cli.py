"""The command `xyro`: options in, one of the other files of this folder does the work.

Heavy modules are imported where they are used, so that `xyro --help` and `xyro submit` start at once. Exit codes:
0 done; 1 done, but not all is well (a URL was refused, an invariant does not hold); 2 bad input: one line on standard
error, nothing changed; 3 this machine failed (disk, memory, a process that hangs).
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from wire.errors import InputError, XyroError
from wire.text import printable

if TYPE_CHECKING:
    from configs.schema import Settings
    from crawl.run_file import Remote
    from crawl.views import Views

BAD_INPUT, MACHINE = 2, 3
AT_ONCE, BYTES_AT_ONCE = 10_000, 1 << 20
"""URLs and characters that `submit` hands over in one request"""
Command = Callable[..., Any]


class _Main(click.Group):
    """Every error is one line that names the place and the mend, and an exit code."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        try:
            code = super().main(*args, **{"prog_name": "xyro", **options, "standalone_mode": False})
            sys.exit(code if isinstance(code, int) else 0)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(0)
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "xyro"
            _fail(f"{error.format_message().rstrip('.')}; `{command} --help` tells what is known", BAD_INPUT)
        except click.ClickException as error:
            _fail(error.format_message(), BAD_INPUT)
        except InputError as error:
            _fail(str(error), BAD_INPUT)
        except XyroError as error:
            _fail(str(error), MACHINE)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(130)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `xyro export pages | head`: it has seen enough (click would exit with 1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


def _fail(text: str, code: int) -> NoReturn:
    click.echo(f"xyro: {printable(text, 2000)}", err=True)
    sys.exit(code)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"xyro {version('xyro')}")
        except PackageNotFoundError:
            click.echo("xyro, from a checkout that is not installed")
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


# Options that several commands have


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    return lambda command: functools.reduce(lambda done, option: option(done), reversed(options), command)


_data = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=None, help="Data directory [./xyro-data]."
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_crawling = _options(
    _data,
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        multiple=True,
        help="Settings (TOML); may be repeated, later beats earlier.",
    ),
    click.option("--contact", default=None, help="Your mail address or page: told to every site that is read."),
    click.option("--scope", type=click.Choice(["host", "domain", "any"]), default=None, help="What belongs [host]."),
    click.option("--max-depth", type=int, default=None, help="Links from a seed to the deepest page read [any]."),
    click.option("--delay", type=float, default=None, help="Seconds between reads of a host, in place of all rules."),
    click.option(
        "--only-net",
        multiple=True,
        metavar="CIDR",
        help="Contact these networks and nothing else, ever; may be repeated.",
    ),
    click.option("--partitions", type=click.IntRange(1, 4096), default=None, help="Partitions of a new crawl [1]."),
)


def _directory(data: Path | None) -> Path:
    return data or Path(os.environ.get("XYRO_STORE__DATA") or "xyro-data")


def _settings(data: Path | None, config: tuple[Path, ...], **overrides: Any) -> tuple[Path, Settings]:
    """The directory, and what this run goes by. `section__key` = value; None and () = not given.

    What the crawl there was last given lies below files, environment and options.
    """
    from configs.load import load
    from crawl import given
    from crawl.log import set_up

    options = {"store.data": data, **{name.replace("__", "."): value for name, value in overrides.items()}}
    directory = Path(load(config, os.environ, options).store.data)
    settings = load((*given.paths(directory), *config), os.environ, options)
    set_up(settings.log.level, settings.log.format)
    return directory, settings


# Commands that crawl


@main.command()
@click.argument("seeds", nargs=-1, metavar="SEED...")
@_crawling
@click.option("--max-pages", type=int, default=None, help="End after so many reads, refreshes included [0: no bound].")
@click.option("--max-seconds", type=float, default=None, help="End after so many seconds [0: no bound].")
@click.option("--refresh", is_flag=True, default=None, help="Go on refreshing until a bound is reached.")
@_as_json
def crawl(
    seeds: tuple[str, ...],
    data: Path | None,
    config: tuple[Path, ...],
    contact: str | None,
    scope: str | None,
    max_depth: int | None,
    delay: float | None,
    only_net: tuple[str, ...],
    partitions: int | None,
    max_pages: int | None,
    max_seconds: float | None,
    refresh: bool | None,
    as_json: bool,
) -> None:
    """Crawl from SEED URLs in the foreground, or resume the crawl in --data by the rules it was begun with.

    Ends when nothing in scope is left to read, or at a bound. Ctrl-C stops in order (exit code 0, with the closing
    report), a second one at once. --json prints one closing JSON object.
    """
    directory, settings = _settings(
        data, config, crawl__scope=scope, crawl__max_depth=max_depth, crawl__max_pages=max_pages,
        crawl__max_seconds=max_seconds, crawl__refresh=refresh, politeness__delay=delay,
        fetch__only_net=only_net, fetch__contact=contact,
    )  # fmt: skip
    from crawl.lifespan import Job, run, sentence
    from crawl.single import Bounds

    limits = settings.crawl
    bounds = Bounds(limits.max_pages, limits.max_seconds, limits.refresh)
    ended = run(Job(directory, settings, bounds, seeds, partitions))
    _tell_refused(ended.refused, "not read")
    if as_json:
        click.echo(json.dumps(ended.report))
    else:
        from crawl.table import table

        click.echo(f"{sentence(ended.report)}\n{table(ended.best, 'importance')}")
    sys.exit(1 if ended.refused else 0)


@main.command()
@_crawling
def serve(
    data: Path | None,
    config: tuple[Path, ...],
    contact: str | None,
    scope: str | None,
    max_depth: int | None,
    delay: float | None,
    only_net: tuple[str, ...],
    partitions: int | None,
) -> None:
    """Run the daemon: crawl and refresh until stopped (Ctrl-C, SIGTERM); `xyro submit` gives it URLs."""
    directory, settings = _settings(
        data, config, crawl__scope=scope, crawl__max_depth=max_depth, politeness__delay=delay,
        fetch__only_net=only_net, fetch__contact=contact,
    )  # fmt: skip
    from crawl.lifespan import Job, run, sentence
    from crawl.single import Bounds

    ended = run(Job(directory, settings, Bounds(forever=True), (), partitions))
    click.echo(sentence(ended.report), err=True)


@main.command()
@click.argument("urls", nargs=-1, metavar="URL...")
@_data
@click.option("--file", type=click.Path(path_type=Path, allow_dash=True), help="URLs, one a line; - is standard input.")
@click.option("--priority", type=click.Choice(["ordered"]), default="ordered", help="Level of the queue [ordered].")
def submit(urls: tuple[str, ...], data: Path | None, file: Path | None, priority: str) -> None:
    """Hand URLs to the running daemon, from arguments, a file, or standard input.

    Each is a seed: it widens the scope, and is read next. Says what was refused and why, and then exits with 1.
    """
    remote = _daemon(_directory(data))
    accepted = refused = 0
    for batch in _batches(_given(urls, file)):
        answer = remote.post("/submit", {"urls": batch, "priority": priority})
        accepted += answer["accepted"]
        refused += len(answer["refused"])
        _tell_refused(((one["url"], one["why"]) for one in answer["refused"]), "refused")
    if not accepted + refused:
        raise InputError("no URL was given; name some, or --file FILE, or pipe them in, one a line")
    click.echo(f"{accepted:,} accepted, {refused:,} refused")
    sys.exit(1 if refused else 0)


def _given(urls: tuple[str, ...], file: Path | None) -> Iterator[str]:
    """URLs as people wrote them; bytes that are no UTF-8 stay visible and are refused."""
    yield from urls
    piped = file == Path("-") or (not urls and file is None and not sys.stdin.isatty())
    try:
        if piped:
            yield from (line.decode(errors="surrogateescape") for line in sys.stdin.buffer)
        elif file is not None:
            with file.open("rb") as lines:
                yield from (line.decode(errors="surrogateescape") for line in lines)
    except OSError as error:
        raise InputError(f"--file {file}: {error.strerror}; name a file with one URL a line") from error


def _batches(urls: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for url in urls:
        if batch and (len(batch) == AT_ONCE or size + len(url) > BYTES_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(url[:BYTES_AT_ONCE])  # far longer than a URL may be: refused, whatever follows
        size += len(url)
    if batch:
        yield batch


def _tell_refused(refused: Iterable[tuple[str, str]], verb: str) -> None:
    for url, reason in refused:
        click.echo(f"{printable(url)}: {verb}: {printable(reason.removeprefix(f'{url}: '), 500)}", err=True)


def _daemon(directory: Path) -> Remote:
    from crawl.run_file import Remote

    remote = Remote.find(directory)
    if remote is None:
        raise InputError(f"{directory}: no process works on it; start one with `xyro serve --data {directory}`")
    return remote


def _host_command(name: str, doc: str) -> None:
    @main.command(name, help=doc)
    @click.argument("host")
    @_data
    def command(host: str, data: Path | None) -> None:
        named = _authority(host)
        if not _daemon(_directory(data)).post("/hosts", {"host": named, "action": name})["known"]:
            raise InputError(f"{named}: no page of this host is known; `xyro export hosts` lists those that are")
        click.echo(f"{named}: {name}{'d' if name.endswith('e') else 'ed'}")


def _authority(host: str) -> str:
    """The host as the crawl books it, of a host, host:port or URL."""
    from wire.urls import authority, canonical

    scheme = "https" if host.endswith(":443") else "http"
    return authority(canonical(host if "://" in host else f"{scheme}://{host}"))


_host_command("pause", "Start no read of HOST until it is resumed.")
_host_command("resume", "Read HOST again, after pause or block.")
_host_command("block", "Take back all orders of HOST and read nothing of it until it is resumed.")


# Commands that look


def _looking(directory: Path, path: str, local: Callable[[Views], Any], **query: Any) -> Any:
    """Ask the running process, or look into the stopped directory."""
    from crawl.run_file import Remote

    remote = Remote.find(directory)
    if remote is not None:
        return remote.get(path, **query)
    from crawl.stopped import nodes_of
    from crawl.views import Views

    with nodes_of(directory) as nodes, Views(nodes) as views:
        return local(views)


@main.command()
@_data
@_as_json
def status(data: Path | None, as_json: bool) -> None:
    """How the crawl stands, running or stopped."""
    directory = _directory(data)
    from crawl.run_file import Remote

    remote = Remote.find(directory)
    if remote is not None:
        said = remote.get("/status")
    else:
        from crawl.stopped import nodes_of
        from crawl.summary import summary

        with nodes_of(directory) as nodes:
            said = {**summary(nodes), "running": False}
    if as_json:
        click.echo(json.dumps(said))
        return
    from crawl.table import fields

    click.echo(fields(said))


@main.command()
@_data
@click.option("-n", "count", type=click.IntRange(1, 100_000), default=20, help="How many [20].")
@click.option("--by", type=click.Choice(["importance", "cash", "stale"]), default="importance", help="[importance]")
@_as_json
def top(data: Path | None, count: int, by: str, as_json: bool) -> None:
    """The first pages by importance, by cash, or by what is lost while they are stale."""
    from wire.clock import SystemClock

    rows = _looking(_directory(data), "/top", lambda views: views.top(count, by, SystemClock().time()), n=count, by=by)
    if as_json:
        click.echo(json.dumps(rows))
        return
    from crawl.table import table

    click.echo(table(rows, by))


@main.command()
@click.argument("url")
@_data
@_as_json
def why(url: str, data: Path | None, as_json: bool) -> None:
    """What is known of URL, and what decides when it is read."""
    from wire.clock import SystemClock
    from wire.urls import canonical

    canonical(url)  # refused before anything is opened

    def local(views: Views) -> Any:
        from crawl.why import why as explain

        wanted = canonical(url, fold_slashes=views.nodes[0].scope.fold_slashes)
        return explain(views, wanted, SystemClock().time())

    said = _looking(_directory(data), "/why", local, url=url)
    if as_json:
        click.echo(json.dumps(said))
        return
    from crawl.table import fields

    because = said.pop("because")
    click.echo("\n".join([*(printable(sentence, 1000) for sentence in because), fields(said)]))


@main.command()
@click.argument("table", type=click.Choice(["pages", "links", "hosts"]))
@_data
@click.option("--format", "form", type=click.Choice(["jsonl", "csv", "parquet"]), default="jsonl", help="[jsonl]")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), help="File [stdout].")
def export(table: str, data: Path | None, form: str, output: Path | None) -> None:
    """Write all known pages, stored links, or hosts, as of one commit."""
    from crawl.output import check, write_rows
    from crawl.run_file import Remote

    out = None if output == Path("-") else output
    check(form, out)
    directory = _directory(data)
    remote = Remote.find(directory)
    if remote is not None:
        write_rows(table, remote.lines(f"/export/{table}"), form, out)
        return
    from crawl.stopped import nodes_of
    from crawl.views import Views

    with nodes_of(directory) as nodes, Views(nodes) as views:
        write_rows(table, getattr(views, table)(), form, out)


@main.command()
@_data
@_as_json
def audit(data: Path | None, as_json: bool) -> None:
    """Check every invariant of the data: cash to the unit, maps, links, rows. Exit code 0 only if all hold."""

    def local(views: Views) -> Any:
        from crawl.audit import audit as check

        return check(views)

    said = _looking(_directory(data), "/audit", local)
    if as_json:
        click.echo(json.dumps(said))
    else:
        click.echo(
            f"{'holds' if said['ok'] else 'BROKEN'}: {said['pages']:,} pages, {said['cash_total']:,} units of cash, "
            f"{said['cash_expected']:,} minted; {said['virtual']:,} virtual, {said['in_flight']:,} in flight"
        )
        for violation in said["violations"]:
            click.echo(f"  {printable(violation, 500)}")
    sys.exit(0 if said["ok"] else 1)


# The laboratory


@main.group()
def lab() -> None:
    """The laboratory: a computed web to try things on."""


def _passed_on(name: str, doc: str, run: Callable[[list[str]], int]) -> None:
    """A command whose options are its module's own."""

    own_help = {"ignore_unknown_options": True, "help_option_names": []}

    @lab.command(name, help=doc, add_help_option=False, context_settings=own_help)
    @click.argument("options", nargs=-1, type=click.UNPROCESSED)
    def command(options: tuple[str, ...]) -> None:
        sys.exit(run(list(options)))


def _web(options: list[str]) -> int:
    from lab.server import main as serve_web

    return serve_web(options)


def _speed(options: list[str]) -> int:
    from crawl.speed import main as measure

    return measure(options)


def _opic(options: list[str]) -> int:
    from lab.opic_lab import main as compare

    return compare(options)


_passed_on("web", "Serve a computed web on loopback; `xyro lab web --help` lists its settings.", _web)
_passed_on("speed", "Measure what a crawl costs: ram, latency, pages; `xyro lab speed --help`.", _speed)
_passed_on("opic", "Hold OPIC against the papers and any graph; `xyro lab opic --help`.", _opic)


@lab.command("demo")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Data directory, a new one [./xyro-demo, or the next free of xyro-demo-2 ...].",
)
@click.option("--pages", type=click.IntRange(200, 20_000), default=3_000, help="Pages of the web [3000].")
def lab_demo(data: Path | None, pages: int) -> None:
    """Serve a computed web, crawl it, and print its most important pages beside the truth. Takes half a minute."""
    from crawl.demo import demo

    sys.exit(demo(data, pages))


if __name__ == "__main__":
    main()
