"""numba behind three names, for the modules of kernels: `compiled`, `in_parallel` and `prange`.

numba is an extra (laboratory, offline rank). Modules that use this one are imported where a kernel is called, never at
the top, and raise ImportError without numba; each kernel has a twin in numpy that gives the same result. Compiled code
is kept beside the source, so only the first call ever waits for the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def _jit(parallel: bool) -> Callable[[F], F]:
    from numba import njit

    def wrap(function: F) -> F:
        # numpy's rules of division: kernels see to their zeros themselves
        return cast(F, njit(cache=True, nogil=True, error_model="numpy", parallel=parallel)(function))

    return wrap


def compiled(function: F) -> F:
    """The function in machine code, of one thread."""
    return _jit(parallel=False)(function)


def in_parallel(function: F) -> F:
    """The function in machine code; its `prange` loops run on `threads(n)` threads."""
    return _jit(parallel=True)(function)


def threads(count: int) -> int:
    """From now on `prange` loops run on at most `count` threads; returns how many it will be."""
    from numba import get_num_threads, set_num_threads
    from numba.core import config

    set_num_threads(max(1, min(count, int(vars(config)["NUMBA_NUM_THREADS"]))))
    return int(get_num_threads())


def _prange() -> type[range]:
    from numba import prange

    return prange


prange = _prange()
"""range, over whose numbers a loop may run in any order and on several threads"""
