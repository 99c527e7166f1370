"""Optional features. Each registers with the frontier's hooks and the node's services; no lower package imports one.

    publish/     publications, WebSub, subscriptions        clusters/   pages that are read together
    focus/       classes of pages that get more cash        rank/       `xyro rank`, and importance by interest
    warehouse/   `xyro xml`, the stored documents           changes/    `xyro changes`, [[sinks]]
    dashboard/   `xyro dashboard`, a page for the browser
    metrics/     `GET /metrics`                             contents/   `xyro page`, WARC files, texts
    bounded/     `xyro crawl --join`, bounded crawls of a cluster
    totals/      one bandwidth, K and gamma for all partitions, of one node or of many
    sites/       [[sites]] in `xyro why`
    identity/    `xyro identity`
    faults/      what plug-ins of installed packages failed at, in `xyro why`
    view_extensions.py   what they add to audit and status

Each is made for one partition and knows that one alone: what concerns others goes by messages, what a crawl has once is
in its home partition. `extensions` lists those that need the partition only (hooks, frontier/hooks.py; of a stopped
crawl, too), `plugins` those that run beside it (Services, service/node/services.py). `check` refuses settings that one
of them could not work with, before there is a directory.

To add ...                open
a format of `xyro export`  service/views/export.py, and its name in service/cli/view_commands.py and rank_command.py
a kind of sink             plugins/changes/sink_targets.py
a notice                   a folder here, listed in `plugins` below (and in `extensions`, if it listens to turns);
                           settings of its own are a section in configs/schema.py; publish/subscribed.py is an
                           example. A hook runs before its commit group is on disk: it only notes what to do; store
                           that by a command, await it, then send
a policy of refreshing     refresh/policy.py, its name in configs/schema.py and service/cli/plan_command.py; on trial in
                           the laboratory: lab/refresh/compared_policies.py, its name in lab/refresh/rules.py
a check of `xyro audit`    view_extensions.py
a line of `xyro status`    `hooks.status` for the figures of a partition; view_extensions.py adds up those of all
a sentence of `xyro why`   `hooks.why` (frontier/hooks.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xyro.service.node.services import Plugin, PluginSet, Services
from xyro.wire.ids import HOME

if TYPE_CHECKING:
    from xyro.configs.schema import Settings
    from xyro.frontier.frontier import Extension, Frontier
    from xyro.guard import Guard
    from xyro.plugins.publish.notices import NoticeClient


def extensions(settings: Settings) -> Sequence[Extension]:
    """The extensions of each partition's node that these settings ask for; the others are not even imported."""
    found: list[Extension] = [_publications, _notice_pages, _documents, lambda frontier: _focus(frontier, settings)]
    found += [lambda frontier: _changes(frontier, settings), _totals]
    if settings.cluster.join:
        found.append(_quota)
    if settings.publish.websub:
        found.append(_hubs)
    found.append(lambda frontier: _values(frontier, settings))
    if settings.opic.values or settings.fetch.parsers:
        found.append(_faults)
    if settings.metrics.serve or settings.metrics.listen:
        found.append(_read_counts)
    found.append(_sites)
    if settings.refresh.guide == "interest":
        found.append(_guide)
    return found


def plugins(frontier: Frontier, services: Services) -> Sequence[Plugin]:
    """The plug-ins of a running partition that the settings ask for; the others are not even imported.

    What a crawl has once is in its home partition alone.
    """
    from xyro.plugins.sites.proxy_failures import ProxyFailures

    settings, found = services.settings, list[Plugin]()
    found.append(ProxyFailures(frontier, services))
    if frontier.partition.number == HOME:
        from xyro.plugins.publish.subscribed import Subscribed

        found.append(Subscribed(frontier, services, lambda: _receivers(services)))
        if settings.publish.websub:
            from xyro.plugins.publish.websub import WebSub

            found.append(WebSub(frontier, services))
        if settings.sinks:
            from xyro.plugins.changes.sinks import Sinks

            found.append(Sinks(frontier, services, settings.sinks))
    if settings.cluster.join:
        from xyro.plugins.bounded.read_gate import ReadGate

        found.append(ReadGate(frontier, services))
    if settings.clusters:
        from xyro.plugins.clusters.page_clusters import PageClusters

        found.append(PageClusters(frontier, settings.clusters, settings.crawl.fold_slashes))
    if settings.opic.values or settings.fetch.parsers:
        from xyro.plugins.faults.plug_in_faults import FaultAnswers

        found.append(FaultAnswers(frontier, services))
    if settings.opic.values:
        from xyro.plugins.focus.value_column import ValueAnswers

        found.append(ValueAnswers(frontier, services))
    if settings.keep.warc or settings.keep.text:
        from xyro.plugins.contents.contents_writer import ContentsWriter

        found.append(ContentsWriter(frontier, services))
    return found


def check(settings: Settings, guard: Guard) -> None:
    """InputError: the settings ask plug-ins for what cannot be done here. Nothing is made."""
    if settings.sinks:
        from xyro.plugins.changes.sinks import check_sinks

        check_sinks(settings.sinks, guard)
    if settings.clusters:
        from xyro.plugins.clusters.page_clusters import cluster_targets

        cluster_targets(settings.clusters, settings.crawl.fold_slashes)


PLUGINS = PluginSet(extensions, plugins, check)
"""the plug-ins of this distribution, for the node that a room above makes"""


def _receivers(services: Services) -> NoticeClient:
    from xyro.plugins.changes.webhook_client import WebhookClient

    return WebhookClient(services)


def _publications(frontier: Frontier) -> object:
    """`xyro publish` works in every crawl; what it makes registers with the hooks when something is published."""
    from xyro.plugins.publish.promises import Promises
    from xyro.plugins.publish.stored_rows import keep_rows

    keep_rows(frontier)
    return Promises(frontier)


def _notice_pages(frontier: Frontier) -> object:
    """So does `xyro subscribe`, from the first subscription on."""
    from xyro.plugins.publish.notice_pages import NoticePages

    return NoticePages(frontier)


def _hubs(frontier: Frontier) -> object:
    from xyro.plugins.publish.websub import HubNames

    return HubNames(frontier)


def _documents(frontier: Frontier) -> object:
    from xyro.plugins.warehouse.document_answers import DocumentAnswers

    return DocumentAnswers(frontier)


def _focus(frontier: Frontier, settings: Settings) -> object:
    """Classes of pages: where the settings ask for some, or did when the state was stored."""
    terms = frontier.ledger.terms
    if not terms.by_class and not terms.by_query and not any(frontier.hooks.stored.get("focus", ())):
        return None
    from xyro.plugins.focus.page_classes import Focus, PageClasses

    return PageClasses(frontier, Focus(settings))


def _values(frontier: Frontier, settings: Settings) -> object:
    """The values that a plug-in gave to pages: where the settings name one, or did when the state was stored."""
    if not settings.opic.values and "voice" not in frontier.columns:
        return None
    from xyro.plugins.focus.value_column import ValueColumn

    return ValueColumn(frontier, settings.opic.values)


def _faults(frontier: Frontier) -> object:
    from xyro.plugins.faults.plug_in_faults import PlugInFaults

    return PlugInFaults(frontier)


def _changes(frontier: Frontier, settings: Settings) -> object:
    """The stream of changes: recorded where the settings ask for it, read where there is one."""
    recording = settings.changes.record or bool(settings.sinks)
    if not recording and "changes" not in frontier.hooks.stored:
        return None
    from xyro.plugins.changes.change_log import ChangeLog

    return ChangeLog(frontier, settings.changes, recording)


def _quota(frontier: Frontier) -> object:
    """The reads that a bounded crawl over the nodes of a cluster leaves to the partition."""
    from xyro.plugins.bounded.read_quota import ReadQuota

    return ReadQuota(frontier)


def _totals(frontier: Frontier) -> object:
    """The sums that several partitions plan their reads with, as one crawl."""
    if frontier.partitions == 1:
        return None
    from xyro.plugins.totals.shared_totals import SharedTotals

    return SharedTotals(frontier)


def _read_counts(frontier: Frontier) -> object:
    from xyro.plugins.metrics.read_counts import ReadCounts

    return ReadCounts(frontier)


def _sites(frontier: Frontier) -> object:
    """In every crawl: SIGHUP may bring [[sites]]."""
    from xyro.plugins.sites.site_sentences import SiteSentences

    return SiteSentences(frontier)


def _guide(frontier: Frontier) -> object:
    from xyro.plugins.rank.guide import Guide

    return Guide.of_node(frontier)
