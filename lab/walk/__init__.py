"""The walk: the files and functions that one page of a default crawl enters (`xyro lab walk`).

    rooms.py       the rooms of the house from the ground up, and the callbacks through which one reaches a higher one
    site.py        three pages on loopback, each linking to the next
    tracer.py      the calls of our own code while the second page is found, ordered, read and written
    page_walk.py   the crawl under the tracer, its report, and the command

In: a default crawl of the site, in this process. Out: the turn that takes the page's report, and the whole way from
the link in the first page's HTML to the commit on disk; calls against the direction of the rooms.
"""
