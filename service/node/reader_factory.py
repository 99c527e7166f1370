"""From settings to the reader's options."""

from __future__ import annotations

import os
import re
from pathlib import Path
from socket import gethostname

from msgspec.structs import replace

from xyro import VERSION
from xyro.archive_disk import claim
from xyro.archive_options import ArchiveOptions
from xyro.configs.parsed_types import scope_settings
from xyro.configs.schema import FetchSettings, KeepSettings, Settings
from xyro.contents_index import FOLDER
from xyro.decode import Caps
from xyro.exchange import ClientLimits
from xyro.politeness import Manners
from xyro.proxy import context_with
from xyro.reader import ReaderOptions
from xyro.request_signing import signing_options
from xyro.service.node.open_files import idle_connections
from xyro.service.node.site_factory import site_options
from xyro.site_entries import is_of_bytes, private_names
from xyro.wire.errors import InputError
from xyro.wire.plug_ins import PARSERS, VALUES, check_offered
from xyro.wire.uses import bits

FEWEST = 8
"""WARC files of each writer that `[keep] bytes` has room for: they are dropped one at a time, and never the open one"""
LEAST_FILE = 1 << 16
"""bytes"""


def options_of(settings: Settings, words: frozenset[str], gamma: float, nodes: int = 1) -> ReaderOptions:
    """The options of a reader that marks links by `words` and begins with `gamma` (0 to 100); nodes: see manners_of."""
    fetch, identity = settings.fetch, settings.identity
    limits = ClientLimits(
        connect=fetch.connect_timeout,
        first_byte=fetch.first_byte_timeout,
        headers=fetch.header_timeout,
        total=fetch.total_timeout,
        slow_bytes=fetch.min_throughput,
        body=Caps(size=fetch.max_body, ratio=int(fetch.max_ratio)),
        wire=2 * fetch.max_body,
        most_idle=idle_connections(fetch.concurrency, processes_of(fetch)),
    )
    return ReaderOptions(
        user_agent=user_agent_of(fetch),
        robots_token=fetch.user_agent,
        purposes=bits(identity.purpose),
        contact=fetch.contact,
        limits=limits,
        manners=manners_of(settings, nodes),
        concurrency=fetch.concurrency,
        newcomers=settings.fetch.newcomer_share,
        signature=fetch.signature,
        skip_suffixes=tuple(suffix[1:] for suffix in scope_settings(settings).skip_suffixes),
        fold_slashes=settings.crawl.fold_slashes,
        words=words,
        gamma=gamma,
        processes=processes_of(fetch),
        values=_installed(VALUES, settings.opic.values, "[opic] values"),
        parsers={mime: _installed(PARSERS, name, f"[fetch] parsers: {mime}") for mime, name in fetch.parsers.items()},
        client=fetch.client,
        log_level=settings.log.level,
        log_form=settings.log.format,
        sites=site_options(settings),
        ca_file=_ca_file(fetch),
        signing=signing_options(identity.sign, identity.key, identity.agent),
    )


def check_options(settings: Settings, data: Path) -> None:
    """InputError: they ask a crawl in the directory `data` for what cannot be done here, which is said before one is
    made."""
    options = options_of(settings, frozenset(), 0.0)
    if options.values or options.parsers:
        from xyro.plug_in_process import check_plug_ins

        check_plug_ins(options.values, tuple(options.parsers.items()))
    _check_extractor(settings.keep)
    if settings.keep.directory and not data.exists():
        claim(Path(settings.keep.directory))


def archive_of(settings: Settings, data: Path) -> ArchiveOptions | None:
    """Options of the archive of a crawl in the directory `data`, which is made here; None: nothing is kept. InputError:
    it cannot be made."""
    keep, fetch, sites = settings.keep, settings.fetch, site_options(settings)
    if not keep.warc and not keep.text:
        return None
    _check_extractor(keep)  # refused here, not by a reader
    directory = Path(keep.directory) if keep.directory else data / FOLDER
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror}: name another [keep] directory") from error
    return ArchiveOptions(
        directory=str(directory),
        crawl=_word(data.absolute().name),
        node=_word(gethostname()),
        warc=keep.warc,
        text=keep.text,
        extractor=keep.extractor,
        file_bytes=_file_bytes(keep, 1 + processes_of(fetch)),
        limit=2 * fetch.max_body,
        full=keep.full,
        user_agent=user_agent_of(fetch),
        contact=fetch.contact,
        private=private_names(sites),
        bytes_signature=is_of_bytes(sites, fetch.signature),
    )


def _file_bytes(keep: KeepSettings, writers: int) -> int:
    """Bytes from which on a WARC file is closed."""
    return min(keep.file_bytes, max(keep.bytes // (FEWEST * writers), LEAST_FILE)) if keep.bytes else keep.file_bytes


def _check_extractor(keep: KeepSettings) -> None:
    """InputError: the extractor of texts is not installed here."""
    if keep.text:
        from xyro.text_libraries import extractor_of  # and the parser of main texts

        extractor_of(keep.extractor)


def _ca_file(fetch: FetchSettings) -> str:
    """The file of authorities, by its whole name. InputError: it cannot be read."""
    context_with(fetch.ca_file)
    return str(Path(fetch.ca_file).absolute()) if fetch.ca_file else ""


def _installed(group: str, name: str, setting: str) -> str:
    """The name of a plug-in that is installed, or none. InputError: it is not."""
    if name:
        try:
            check_offered(group, name)
        except InputError as error:
            raise InputError(f"{setting} = {error}") from error
    return name


def _word(name: str) -> str:
    """A name as a word of a file name."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", name).strip("._")[:60] or "crawl"


def processes_of(fetch: FetchSettings) -> int:
    """Reader processes: as many as asked for, or all cores but the node's."""
    if fetch.readers != "auto":
        return fetch.readers
    return max(len(os.sched_getaffinity(0)) - 1, 0)


def user_agent_of(fetch: FetchSettings) -> str:
    """Xyro/0.1.0 (+contact): the product token that robots.txt knows, and whom to ask."""
    contact = fetch.contact if not fetch.contact or "://" in fetch.contact else f"mailto:{fetch.contact}"
    return f"{fetch.user_agent}/{VERSION} (+{contact})" if contact else f"{fetch.user_agent}/{VERSION}"


def manners_of(settings: Settings, nodes: int = 1) -> Manners:
    """--delay S replaces the three delays; else they are those of [politeness].

    nodes: how many read beside this one, itself included. None knows when another one reads a host in the same network
    or domain, so each waits as many times as long there: together they read no more often than one would. Addresses
    have turns: service/cluster/address_turns.py.
    """
    polite = settings.politeness
    if polite.delay is not None:
        return replace(Manners.fixed(polite.delay, polite.net_delay, polite.domain_delay), nodes=nodes)
    return Manners(
        polite.min_delay,
        polite.factor,
        polite.factor_cap,
        polite.ip_delay,
        polite.crawl_delay_cap,
        net_delay=polite.net_delay,
        domain_delay=polite.domain_delay,
        nodes=nodes,
    )
