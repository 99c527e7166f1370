"""The exit code, and one line that explains it, of a long computation that keeps its results in a directory."""

from __future__ import annotations

import sys
from collections.abc import Callable

from xyro.wire.errors import InputError, MachineError


def exit_code(command: Callable[[], int]) -> int:
    """Run the command and return its exit code.

    2: bad input, or a package is missing; 3: a disk fails, or too little RAM; 130: Ctrl-C.
    """
    try:
        return command()
    except InputError as error:
        sys.stderr.write(f"xyro: {error}\n")
        return 2
    except MachineError as error:
        sys.stderr.write(f"xyro: {error}\n")
        return 3
    except OSError as error:
        sys.stderr.write(f"xyro: {error.filename or 'disk'}: {error.strerror or error}: free or mend the disk\n")
        return 3
    except MemoryError as error:
        sys.stderr.write(f"xyro: {error or 'not enough RAM'}: ask for less, or use a machine with more RAM\n")
        return 3
    except KeyboardInterrupt:
        sys.stderr.write("xyro: stopped; the same command goes on from here\n")
        return 130
    except ImportError as error:
        sys.stderr.write(f"xyro: {error.name or error}: not installed; `pip install 'xyro[lab]'` brings it\n")
        return 2
