"""`xyro repair`: a damaged data directory made one whose audit is exact; the damaged one stays beside it.

    1. Every partition is saved into DIR's sibling .DIR.repairing (metadata/salvage.py), whether it is damaged or not:
       what they have sent each other has to fit.
    2. What follows from their rows is made anew, and cash is written off: units that are missing are paid to the
       virtual page, which pays them to all pages; transfers that were on their way are among them.
    3. The new directory is audited.
    4. The two change places; the old one is renamed to DIR.damaged.

Until step 4 DIR is as it was. A process that is killed anywhere leaves that; the next repair begins anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from xyro.configs.load import SERVE, load
from xyro.configs.parsed_types import scope_settings
from xyro.configs.schema import Settings
from xyro.contents_index import FOLDER
from xyro.frontier.frontier import Extension, Frontier
from xyro.frontier.scope import Scope
from xyro.metadata import rows
from xyro.metadata.directories import sync
from xyro.metadata.partition import Partition, new_seed
from xyro.metadata.salvage import Salvage, salvage
from xyro.metadata.states import State
from xyro.metadata.store import Store
from xyro.opic.cash import UNIT
from xyro.refresh.policy import Spread
from xyro.service.node import crawl_file
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError, MachineError, XyroError

Check = Callable[[Path], dict[str, Any]]
Extensions = Callable[[Settings], Sequence[Extension]]


def repair(directory: Path, check: Check, extensions: Extensions) -> dict[str, Any]:
    """Repair a data directory; what was lost. `check` audits one ({"ok": ..., "violations": [...]}).

    InputError: no such directory, in use, or something is in the way; MachineError: not enough is left, or the audit of
    what was made fails. DIR is unchanged after any error.
    """
    path = directory.resolve()
    fresh, backup = path.with_name(f".{path.name}.repairing"), path.with_name(f"{path.name}.damaged")
    folders = sorted(path.glob("p[0-9][0-9][0-9][0-9]")) if path.is_dir() else []
    if not folders:
        raise InputError(f"{path}: not a data directory of Xyro (no p0000 in it); name another one with --data")
    if _is_sound(path, check):
        return {"repaired": False, "lost": {}}
    if backup.exists():
        raise InputError(f"{backup}: is in the way of what the repair leaves: move it elsewhere")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(0o700)
        saved = _save(path, fresh, folders)
        lost = _account(saved, _settle(fresh, saved, extensions))
        result = check(fresh)
        if not result["ok"]:
            raise MachineError(f"{path}: cannot be repaired ({result['violations'][0]}): restore a copy")
        path.rename(backup)
        fresh.rename(path)
        if (backup / FOLDER).exists():  # what is kept of pages: their ids are as they were
            (backup / FOLDER).rename(path / FOLDER)
        sync(path.parent)
    except OSError as error:
        raise MachineError(f"{fresh}: {error.strerror or error}: free or mend the disk, then repair again") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return {"repaired": True, "damaged": str(backup), "pages": result["pages"], "lost": lost}


def _is_sound(path: Path, check: Check) -> bool:
    """Tell whether nothing is to be repaired. InputError: somebody works on it."""
    try:
        ok = bool(check(path)["ok"])
        data = DataDir.open(path, look=True)
        try:
            crawl_file.check(path, data.home.store)
        finally:
            data.close()
    except InputError as error:
        if "in use" in str(error):
            raise
        return False
    except (XyroError, OSError, ValueError, KeyError, TypeError, IndexError):
        return False
    return ok


def _save(path: Path, fresh: Path, folders: Sequence[Path]) -> list[Salvage]:
    """All partitions, and crawl.toml as the store has it."""
    partitions, seed = int(folders[-1].name[1:]) + 1, new_seed()
    if len(folders) != partitions:
        raise MachineError(f"{path}: {len(folders)} of {partitions} partitions are there: restore a copy")
    saved = []
    for number, folder in enumerate(folders):
        facts = {"number": number, "partitions": partitions, "seed": seed}
        saved.append(salvage(folder, fresh / folder.name, facts))
    store = Store.open(fresh / folders[0].name / "store")
    try:
        text = crawl_file.stored_text(store)
    finally:
        store.close()
    if text:
        (fresh / crawl_file.NAME).write_text(text, encoding="utf-8")
    elif crawl_file.paths(path):
        shutil.copy(path / crawl_file.NAME, fresh / crawl_file.NAME)
    else:
        raise MachineError(f"{path}: neither {crawl_file.NAME} nor the store tells whom it contacts: restore a copy")
    return saved


def _settle(fresh: Path, saved: Sequence[Salvage], extensions: Extensions) -> int:
    """Make anew what follows from the rows, and write cash off; the units that were missing."""
    settings = load((SERVE, *crawl_file.paths(fresh)))
    scope = Scope(scope_settings(settings), settings.rules, guard_of(settings.fetch).host_allowed)
    data = DataDir.open(fresh)
    try:
        frontiers = [
            _frontier(partition, each.state, scope, settings, extensions)
            for partition, each in zip(data.partitions, saved, strict=True)
        ]
        missing = _balance(frontiers)
        for frontier in frontiers:
            partition = frontier.partition
            partition.begin()
            partition.columns.touch("cash", np.arange(partition.columns.n))
            commit = partition.seal({"node": frontier.dump()})
            partition.write(commit)
            partition.written(commit)
            for _ in partition.snapshot():
                pass
        return missing
    finally:
        data.close()


def _frontier(
    partition: Partition, state: dict[str, Any], scope: Scope, settings: Settings, extensions: Extensions
) -> Frontier:
    """The frontier of what was saved: with its state if that can be used, else as of a crawl that begins."""
    now = SystemClock().time()
    for attempt in ({**state, "post": {"sent": [], "heard": []}} if state else {}, {}):
        partition.scalars = {**partition.scalars, "node": attempt}
        frontier = Frontier(partition, scope, settings, False, extensions(settings))
        try:
            frontier.recover(now)
        except (XyroError, KeyError, TypeError, ValueError, IndexError):
            continue
        _recount(frontier)
        return frontier
    raise MachineError(f"{partition.directory}: too little is left of it: restore a copy")


def _recount(frontier: Frontier) -> None:
    """Counts and sums that follow from columns and rows."""
    partition, columns = frontier.partition, frontier.columns
    states = columns["state"][: columns.n]
    ledger, bandwidth = frontier.ledger, frontier.scheduler.bandwidth
    ledger.foreign = int((states == State.FOREIGN).sum())
    found = [rows.unpack_refresh(value) for _, value in partition.scan(rows.REFRESH.prefix)]
    bandwidth.counts.begin(Spread.from_weights([row.weight for row in found]))
    bandwidth.measured = False
    frontier.read_pages = sum(row.reads > 0 for row in found)
    frontier.reads = max(frontier.reads, sum(row.reads for row in found))


def _balance(frontiers: Sequence[Frontier]) -> int:
    """Every known page is worth its unit again; the units that were missing (below 0: too many, taken from what the
    virtual page has; where that is not enough, all cash is paid anew)."""
    total = 0
    for frontier in frontiers:
        columns, n = frontier.columns, frontier.columns.n
        own = columns["state"][:n] != State.FOREIGN
        effective = frontier.ledger.effective(slice(0, n))
        columns["cash"][:n] = np.where(own, columns["cash"][:n] + np.maximum(-effective, 0), 0)
        total += int(frontier.ledger.effective(slice(0, n))[own].sum()) + frontier.ledger.virtual.balance
    pages = sum(frontier.ledger.known_pages for frontier in frontiers)
    missing = UNIT * pages - total
    over = -missing
    for frontier in frontiers:
        ledger, virtual = frontier.ledger, frontier.ledger.virtual
        removed = min(max(over, 0), virtual.balance)
        virtual.pot, virtual.account = virtual.balance - removed, 0
        over -= removed
        ledger.elsewhere_pages = pages - ledger.known_pages
    if over > 0:  # pages have more than there is: all begin anew
        for frontier in frontiers:
            columns, n = frontier.columns, frontier.columns.n
            own = columns["state"][:n] != State.FOREIGN
            columns["cash"][:n] -= np.where(own, frontier.ledger.effective(slice(0, n)), 0)
        missing = UNIT * pages
        frontiers[0].ledger.virtual.receive(missing)
    else:
        frontiers[0].ledger.virtual.receive(max(missing, 0))
    return missing


def _account(saved: Sequence[Salvage], missing: int) -> dict[str, Any]:
    """Sum up the losses of all partitions, without those that are none."""
    found: dict[str, Any] = {}
    for each in saved:
        for name, count in asdict(each.loss).items():
            if name != "notes":
                found[name] = found.get(name, 0) + int(count)
    return {**{name: count for name, count in found.items() if count}, **({"cash": missing} if missing else {})}
