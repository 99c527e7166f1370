"""Property tests have no deadline per example: a shared, slow core is no failure. Child processes keep their byte code.

Hundreds of tests start the command as a process of its own. Where the environment forbids byte code
(PYTHONDONTWRITEBYTECODE), each of them would compile the whole program again, half a second of CPU.
"""

import atexit
import os
import shutil
import sys
import tempfile

from hypothesis import settings

settings.register_profile("xyro", deadline=None)
settings.load_profile("xyro")

if sys.dont_write_bytecode and "PYTEST_XDIST_WORKER" not in os.environ:
    _bytecode = tempfile.mkdtemp(prefix="xyro-bytecode-")
    atexit.register(shutil.rmtree, _bytecode, ignore_errors=True)
    os.environ["PYTHONPYCACHEPREFIX"] = _bytecode
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
