"""Faults of a simulated cluster: each lasts some minutes, or is over at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from xyro.lab.simulate.machines import PARTITIONS, Machine, Surroundings

STEPS = ("copy", "stop", "tail", "name", "change", "delete")
"""of a move (service/cluster/mover.py)"""
Fault = Callable[[Surroundings, Machine], Awaitable[None]]


async def _killed(cluster: Surroundings, machine: Machine) -> None:
    await machine.kill()
    await asyncio.sleep(cluster.draw.uniform(1.0, 600.0))


async def _stopped(cluster: Surroundings, machine: Machine) -> None:
    await machine.stop()
    await asyncio.sleep(cluster.draw.uniform(1.0, 600.0))


async def _paused(cluster: Surroundings, machine: Machine) -> None:
    cluster.loop.frozen.add(machine.life)
    await asyncio.sleep(cluster.draw.uniform(1.0, 600.0))


async def _cut(cluster: Surroundings, machine: Machine) -> None:
    cluster.broker.cut.add(machine.number)
    await asyncio.sleep(cluster.draw.uniform(1.0, 600.0))


async def _no_broker(cluster: Surroundings, _: Machine) -> None:
    cluster.broker.away = True
    await asyncio.sleep(cluster.draw.uniform(1.0, 600.0))


async def _lossy(cluster: Surroundings, _: Machine) -> None:
    cluster.broker.loss = 0.05
    await asyncio.sleep(cluster.draw.uniform(300.0, 1200.0))


async def _full(cluster: Surroundings, machine: Machine) -> None:
    cluster.full.add(machine.life)
    await asyncio.sleep(cluster.draw.uniform(60.0, 600.0))


async def _rolling(cluster: Surroundings, _: Machine) -> None:
    for machine in cluster.machines:
        await machine.stop()
        machine.start()
        await asyncio.sleep(cluster.draw.uniform(1.0, 60.0))


def _dies(cluster: Surroundings, victim: Machine, step: str) -> None:
    if victim.lives:
        cluster.note(f"dies as {step} begins", victim.number)
        cluster.kill_soon(victim)
        cluster.loop.frozen.add(victim.life)


async def _move(cluster: Surroundings, machine: Machine) -> None:
    """A partition goes to that node; it, or the one that had it, dies at a step of the move, or nobody does."""
    partition = cluster.draw.randrange(PARTITIONS)
    others = [each for each in cluster.machines if each is not machine and each.node is not None]
    giver = next((each for each in others if partition in each.node.bus.open), None)  # type: ignore[union-attr]
    if giver is None:
        return
    victim = cluster.draw.choice((None, giver, machine))
    if victim is not None:
        giver.at_step = (step := cluster.draw.choice(STEPS)), partial(_dies, cluster, victim, step)
    await cluster.plan_move(partition, machine)
    await asyncio.sleep(cluster.draw.uniform(30.0, 300.0))


async def full_in_moves(cluster: Surroundings, machine: Machine, step: str = "", leaving: bool | None = None) -> None:
    """One partition leaves it while another comes; its disk is full as a step of one of the two moves begins.

    step, leaving: which step, and of which move; drawn where they are left out."""
    others = [each for each in cluster.machines if each is not machine and each.node is not None]
    other = cluster.draw.choice(others) if others else None
    if machine.node is None or other is None or other.node is None:
        return
    ours, theirs = sorted(machine.node.bus.open), sorted(other.node.bus.open)  # type: ignore[attr-defined]
    if not ours or not theirs:
        return
    giver = machine if (cluster.draw.random() < 0.5 if leaving is None else leaving) else other
    giver.at_step = step or cluster.draw.choice(STEPS), partial(_fills, cluster, machine, giver)
    await cluster.plan_move(cluster.draw.choice(ours), other)
    await cluster.plan_move(cluster.draw.choice(theirs), machine)
    await asyncio.sleep(cluster.draw.uniform(60.0, 600.0))


def _fills(cluster: Surroundings, machine: Machine, giver: Machine) -> None:
    cluster.note("full as a partition", "leaves" if giver is machine else "comes", machine.number)
    cluster.full.add(machine.life)


FAULTS: dict[str, Fault] = {
    "killed node": _killed,
    "stopped node": _stopped,
    "paused node": _paused,
    "cut link": _cut,
    "broker away": _no_broker,
    "lossy transport": _lossy,
    "full disk": _full,
    "full disk in moves": full_in_moves,
    "rolling restart": _rolling,
    "move": _move,
}
