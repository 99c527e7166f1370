"""Names for the column types. Cash is in units (cash.UNIT = one page), ticks are 2^-16 turnover (importance.TICKS)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Units = npt.NDArray[np.int64]
"""cash, integer units"""
Pages = npt.NDArray[np.int64]
"""indices of pages in the columns, or offsets into a list of links"""
Seeds = npt.NDArray[np.uint64]
Flow = npt.NDArray[np.float32]
"""page-units of cash per turnover; sign bit set: never measured (see importance.py)"""
Ticks = npt.NDArray[np.uint32]
Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
