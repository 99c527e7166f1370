"""Crawls that are killed again and again, and what must hold afterwards (`xyro lab crash`).

    crash_lab.py    the ordeal: a crawl in peace, a crawl that is killed, and the comparison
    kill.py         processes of the real command, ended at a chosen moment
    disk.py         a command whose disk is slow
    check.py        what the two crawls must have in common, by the server's log
    xml.py          what must hold of documents that waited for their parts

In: how many kills, at which moments. Out: one line that says whether all holds, and what does not.
"""
