"""Directories: locked by a process, made whole or not at all, or shadowed, to be read without being written.

Nothing here knows what lies in them, but for the names of LevelDB's files.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from xyro.wire.errors import InputError, MachineError

_TABLES = (".ldb", ".sst")
_NOT_SHADOWED = frozenset({"LOCK", "LOG", "LOG.old", "OWNER"})
_PLACES = ("/dev/shm", "")  # noqa: S108 - by mkdtemp: a name of nobody else
"""where a store that is looked at has its shadow: in memory, else where temporary files are (TMPDIR)"""
_PREFIX, _YOUNG = "xyro-look-", 60.0
"""names of shadows; seconds"""


SYNCS = 16
"""files that are synced at the same time"""


class Lock:
    """An advisory lock on an open file or directory; it ends with the process."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def take(self, *, wait: bool, shared: bool = False) -> bool:
        """Whether it is ours now; if not, the handle is closed."""
        try:
            fcntl.flock(self._handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            self.release()
            return False
        return True

    def release(self) -> None:
        """Releasing twice is fine."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def is_locked(path: Path) -> bool:
    """Tell whether a process has the file of a lock for itself; False also where that cannot be known."""
    try:
        lock = Lock(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    free = lock.take(wait=False, shared=True)
    lock.release()
    return not free


@contextmanager
def announced(path: Path) -> Iterator[None]:
    """Tell others, as long as this lasts, that a process begins to work in a directory, which may not exist yet.

    Where another one does, or the system has no names for sockets but of files (Linux has), nothing is told.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as named:
        try:
            named.bind(_announced_name(path))
            named.listen(1)
        except OSError:
            named.close()
        yield


def is_announced(path: Path) -> bool:
    """Tell whether a process has announced itself for a directory."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(_announced_name(path))
        except BlockingIOError:
            return True  # its backlog is full: nobody accepts
        except OSError:
            return False
    return True


def _announced_name(path: Path) -> bytes:
    """Begins with a zero: a name in memory, which ends with its process."""
    return b"\0xyro-" + hashlib.blake2b(os.fsencode(path.resolve()), digest_size=16).hexdigest().encode()


def create_directory(path: Path, fill: Callable[[Path], None]) -> None:
    """Make a directory with what `fill` puts into it: under a temporary name, synced, then renamed.

    Nobody but its owner may enter it, and it never exists in part. If `fill` raises, nothing is left and its error goes
    on. Raises InputError if `path` exists and is not an empty directory; MachineError if the disk fails.
    """
    path = path.absolute()
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(path.parent):
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise InputError(f"{path}: exists and is not empty: name another directory")
            shutil.rmtree(temporary, ignore_errors=True)  # of a process that died here
            temporary.mkdir(0o700)  # a crawl holds its owner's secrets: cookies, tokens, what was submitted
            try:
                fill(temporary)
                _sync_tree(temporary)
                temporary.rename(path)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            sync(path.parent)
    except OSError as error:
        raise MachineError(f"cannot create {path}: {error}: mend the disk, or name another directory") from error


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Wait for others that create a directory in the same place."""
    lock = Lock(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    lock.take(wait=True)
    try:
        yield
    finally:
        lock.release()


def _sync_tree(top: Path) -> None:
    """Sync all files and directories, many at once: the disk serves those that wait for it together. Their order does
    not matter, for nobody finds the tree before all of it is synced."""
    paths = [Path(folder, name) for folder, _, files in os.walk(top) for name in (*files, "")]
    with ThreadPoolExecutor(min(len(paths), SYNCS)) as pool:
        for _ in pool.map(sync, paths):
            pass


def write_file(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, and sync it. MachineError: the disk failed."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        sync(path.parent)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}: mend the disk") from error


def sync(path: Path) -> None:
    """Sync a file or a directory to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Shadow:
    """A directory with the files of a store, on the first of the places for temporary files that has room.

    It is locked while it is used: those of processes that were killed are removed by the next one that looks.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        for place in _PLACES:
            parent = place or tempfile.gettempdir()
            if not os.access(parent, os.W_OK):
                continue
            self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
            self._lock = Lock(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            self._lock.take(wait=False)
            _sweep(Path(self.path))
            try:
                self._fill(path)
                return
            except OSError as error:
                self.remove()
                if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not place:
                    raise
        raise OSError(errno.ENOSPC, "no place for temporary files has room")

    def _fill(self, path: Path) -> None:
        for file in path.iterdir():
            if file.suffix in _TABLES:
                Path(self.path, file.name).symlink_to(file.absolute())
            elif file.name not in _NOT_SHADOWED:
                shutil.copyfile(file, Path(self.path, file.name))

    def remove(self) -> None:
        """Removing twice is fine."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def _sweep(new: Path) -> None:
    """Remove the shadows beside a new one that nobody uses; one that is just being made is not locked yet."""
    for shadow in new.parent.glob(f"{_PREFIX}*"):
        try:
            lock = Lock(os.open(shadow, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
            age = new.stat().st_mtime - shadow.stat().st_mtime
        except OSError:  # somebody else's, or removed just now
            continue
        if lock.take(wait=False):
            if age > _YOUNG:
                shutil.rmtree(shadow, ignore_errors=True)
            lock.release()
