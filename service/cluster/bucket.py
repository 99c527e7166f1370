"""Keeps the placement in a JetStream bucket, changed by compare-and-set only; epochs in the partitions' directories.

The document is small and changes seldom: that all of it is one value makes founding a crawl, joining and moving one
step each, done or not done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from xyro.metadata.directories import write_file
from xyro.service.cluster.broker_link import BrokerLink
from xyro.service.node.data_dir import NODE_FILE
from xyro.wire.errors import InputError, MachineError
from xyro.wire.placement import Placement

if TYPE_CHECKING:
    from nats.js.kv import KeyValue

BUCKET: Final = "xyro"
KEY: Final = "crawl"
EPOCH: Final = "epoch"
"""file of a partition's directory: the epoch at which it may be opened"""
SHOWN = 60
"""characters of a setting's value in a sentence"""
REPLICAS: Final = 3
"""of the bucket, where the broker is several servers"""
ONE_SERVER: Final = 10074
"""a broker's answer to a wish for replicas, where it is one server"""
ATTEMPTS = 50
"""changes of others that one change may meet"""


class NodeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of a data directory that says which node of which crawl it is."""

    crawl: str
    seed: int
    partitions: int
    """of the whole crawl"""
    identity: str

    def write(self, directory: Path) -> None:
        write_file(directory / NODE_FILE, msgspec.json.encode(self) + b"\n")

    @classmethod
    def read(cls, directory: Path) -> NodeFile | None:
        """The file of a directory; None where there is none. InputError: it cannot be read."""
        path = directory / NODE_FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(f"{path}: {error}; it says which node this is: bring it back from a backup") from error


class Bucket:
    """The document of the placement in its bucket."""

    def __init__(self, store: KeyValue) -> None:
        self._store = store

    @classmethod
    async def open(cls, link: BrokerLink) -> Bucket:
        """Open the bucket, made where it is missing. MachineError: the broker has no JetStream, or is away."""
        from nats.errors import Error
        from nats.js.api import KeyValueConfig
        from nats.js.errors import APIError, NotFoundError

        jetstream = link.jetstream()
        try:
            try:
                return cls(await jetstream.key_value(BUCKET))
            except NotFoundError:
                pass
            try:
                return cls(await jetstream.create_key_value(KeyValueConfig(BUCKET, history=8, replicas=REPLICAS)))
            except APIError as error:
                if error.err_code != ONE_SERVER:
                    raise
            return cls(await jetstream.create_key_value(KeyValueConfig(BUCKET, history=8)))
        except (OSError, Error) as error:
            raise MachineError(
                f"{link.url}: the broker keeps no bucket ({error or type(error).__name__}); "
                "`xyro hub` starts one with JetStream"
            ) from error

    async def read(self) -> Placement | None:
        """The placement of now; None: the cluster is empty. MachineError: the broker is away."""
        from nats.errors import Error
        from nats.js.errors import NotFoundError

        try:
            entry = await self._store.get(KEY)
        except NotFoundError:
            return None
        except (OSError, Error) as error:
            raise MachineError(f"the bucket of the cluster cannot be read ({error or type(error).__name__})") from error
        try:
            found = msgspec.json.decode(entry.value or b"", type=Placement)
        except msgspec.MsgspecError as error:
            raise MachineError(f"the bucket of the cluster holds no placement of this version: {error}") from error
        return msgspec.structs.replace(found, revision=entry.revision or 0)

    async def create(self, placement: Placement) -> bool:
        """Found a cluster; False: another one was faster."""
        from nats.errors import Error
        from nats.js.errors import KeyWrongLastSequenceError

        try:
            await self._store.create(KEY, encoded(placement))
        except KeyWrongLastSequenceError:
            return False
        except (OSError, Error) as error:
            raise MachineError(f"the bucket of the cluster cannot be written ({error})") from error
        return True

    async def change(self, change: Callable[[Placement], Placement | None]) -> Placement:
        """Change the placement: `change` is called with that of now until nobody was faster, and may return None to
        leave it as it is. -> that of now. MachineError: whether it was changed is not known, or the cluster is empty.
        """
        from nats.errors import Error
        from nats.js.errors import KeyWrongLastSequenceError

        for _ in range(ATTEMPTS):
            now = await self.read()
            if now is None:
                raise MachineError("the cluster's bucket is empty; `xyro cluster adopt` makes it anew from its nodes")
            if (wanted := change(now)) is None:
                return now
            try:
                wanted = msgspec.structs.replace(wanted, version=now.version + 1)
                revision = await self._store.update(KEY, encoded(wanted), last=now.revision)
            except KeyWrongLastSequenceError:
                continue
            except (OSError, Error) as error:
                raise MachineError(f"the bucket of the cluster cannot be written ({error})") from error
            return msgspec.structs.replace(wanted, revision=revision)
        raise MachineError("the bucket of the cluster changes all the time; try again")


def encoded(placement: Placement) -> bytes:
    """The placement as it is stored."""
    fields = msgspec.to_builtins(placement)
    del fields["revision"]
    return msgspec.json.encode(fields)


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """Name the settings that are not those of the cluster, with both values."""
    for key in sorted({*ours, *theirs}):
        mine, other = ours.get(key), theirs.get(key)
        if mine != other:
            yield f"{key} is {_text(mine)} here and {_text(other)} there"


def _text(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


# The epochs of a directory


def epochs(directory: Path) -> dict[int, int]:
    """The partitions that lie in a data directory, each with the epoch that it carries; 0: none yet."""
    return {int(path.name[1:]): epoch_of(path) for path in sorted(directory.glob("p[0-9][0-9][0-9][0-9]"))}


def epoch_of(partition: Path) -> int:
    """The epoch that a partition's directory carries; 0: none yet. InputError: it cannot be read."""
    path = partition / EPOCH
    try:
        return int(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        return 0
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}; bring it back from a backup") from error


def set_epoch(partition: Path, epoch: int) -> None:
    """Let a partition's directory carry an epoch, durably."""
    write_file(partition / EPOCH, b"%d\n" % epoch)
