"""Room on the disk for files that are mapped: whoever writes to a map of which the disk is full is killed (SIGBUS)."""

from __future__ import annotations

import errno
import os


def reserve(file: int, size: int) -> None:
    """Make an open, empty file `size` zeros long that have their place on the disk. OSError: there is none."""
    try:
        os.posix_fallocate(file, 0, size)
    except (AttributeError, OSError) as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            raise
        os.ftruncate(file, size)  # this system or file system cannot promise
