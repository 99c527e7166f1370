"""The states of a page, as a table, and the hot columns that hold them.

    state         means                                             leaves it when
    UNREAD        known, in scope, never settled by an order        an order is answered, or scope changes
    READ          an order was answered with a page, a redirect     it answers 404/410, is disallowed ...
                  or a 304
    ERROR         the last order failed temporarily; `due` is the   the next order is answered
                  next try
    FAILED        the last order failed for good (error class in    a later order (refresh, a person) is answered
                  Refresh-Data), 404/410 included
    DEAD          404 or 410 twice, [crawl] confirm_dead s apart    a person orders it and it answers
    OUT           out of scope, too deep, or not worth reading      scope changes
    DISALLOWED    robots.txt forbids it                             robots.txt is read again and allows it
    BLOCKED       its address or port is never contacted, or a      a person resumes the host
                  person blocked the host
    FOREIGN       lives in another partition: holds cash only       never
                  until the commit group ends

Cash of READ pages is spent over their links; UNREAD and ERROR keep theirs; the others are dangling: when selection
reaches them their cash goes to the virtual page.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np


class State(enum.IntEnum):
    """See the table above."""

    UNREAD = 0
    READ = 1
    ERROR = 2
    FAILED = 3
    DEAD = 4
    OUT = 5
    DISALLOWED = 6
    BLOCKED = 7
    FOREIGN = 8


DANGLING = (State.FAILED, State.DEAD, State.OUT, State.DISALLOWED, State.BLOCKED)

NAMES = {
    State.UNREAD: "unread",
    State.READ: "read",
    State.ERROR: "error",
    State.FAILED: "error",
    State.DEAD: "dead",
    State.OUT: "out-of-scope",
    State.DISALLOWED: "disallowed",
    State.BLOCKED: "blocked",
}
"""the names that export and `why` use; a page whose order is out is 'leased', one that a person ordered is 'queued'"""

FLAG_BITS = 0xFFFF_FFFF
"""all bits of the column `flags`: those of the core are the low 16 (0x0400 ... 0x8000 are free), those of optional
features the high 16 (0x0400_0000 and above are free)"""
LEASED = 0x0001
"""flag: an order for the page is out"""
WANTED = 0x0002
"""flag: a person or a loader wants it, its LEASE row is stored"""
HINTED = 0x0004
"""flag: unread, with a date from a sitemap or feed in its Refresh-Data"""
NAMED = 0x0008
"""flag: robots.txt names it as a sitemap, so it may list URLs outside its folder"""
KIND_SHIFT = 4
KIND_MASK = 0x0070
"""flags: wire.messages.Kind of the last body"""
HASTENED = 0x0080
"""flag: its next read was set by evidence (a claim, a regular change), not by its interval alone"""
CITED = 0x0100
"""flag: unread, and a page of another host links to it"""
SAMPLED = 0x0200
"""flag: it is in the sample of the refreshed pages (refresh/dated_pages.py)"""
CLASS_SHIFT = 16
CLASS_MASK = 0x000F_0000
"""flags: the page's class at the virtual page (opic/focus.py); 0 where all pages are alike"""
WORDED = 0x0010_0000
"""flag: a link with words of a [[focus]] table led here"""
QUERY = 0x0020_0000
"""flag: its URL has a query; kept only while `query_weight` asks"""
SOUGHT = 0x0040_0000
"""flag: it is a document of a format that `leads_to` of a [[focus]] table names"""
LEADS = 0x0080_0000
"""flag: a page that it links to is SOUGHT; of a page that was never read: one that LEADS shows it"""
ABSENT = 0x0100_0000
"""flag: the stream of changes ([changes] record) has it as gone"""
FAULTY = 0x0200_0000
"""flag: a plug-in failed at its last read, its FAULTS row is stored"""

COLUMNS: dict[str, np.dtype[Any]] = {
    "cash": np.dtype(np.int64),
    "flow": np.dtype(np.float32),
    "clock": np.dtype(np.uint32),
    "birth": np.dtype(np.uint32),
    "host": np.dtype(np.uint32),
    "due": np.dtype(np.uint32),
    "state": np.dtype(np.uint8),
    "depth": np.dtype(np.uint8),
    "flags": np.dtype(np.uint32),
}
"""The hot columns, 34 B a page: cash (key: cash minus the virtual page's scalar), flow, clock of the last spending,
birth (ticks), host, due (seconds since 1970 of the next read, 0 = none), state, depth, flags. When a URL was first met
is in Map-Data and the change rate in Refresh-Data: who needs them has the row at hand."""

RATE, LAST_READ, FOLDER, VOICE = "rate", "last_read", "folder", "voice"
OPTIONAL = frozenset({"slots", "parent", RATE, LAST_READ, FOLDER, VOICE})
"""Hot columns that a setting turns on, or that older directories lack. folder: slot of the page's folder, uint16, in
every directory that this Xyro has worked on (partition.py). parent: 1 + the page whose links first showed it, uint32
(plugins/focus/interest.py; a [[focus]] with leads_to). voice: 1 + thousandths of its importance that a page passes on,
uint16, 0 = all (plugins/focus/value_column.py; [opic] values).
slots: the last m measures of a page, float32 (2, m), see opic/slots.py; 8 m B a
page ([opic] history other than interpolation and static). rate, last_read: changes a day and seconds since 1970 of
pages that are read by a scan, float32 and uint32 ([refresh] execution; turn/scanned.py)."""
