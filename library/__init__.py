"""The library: `import xyro` gives programs what the command `xyro` gives people (names: xyro/__init__.py).

    page_crawl.py     crawl(): a bounded crawl, each page as it is read
    crawled_pages.py  the crawl in its thread; its pages, for a program with an event loop, and for one without
    page_feed.py      the way of a page from the crawl to the program
    crawl_directory.py   open(): a data directory, whether a process works on it or not
    link_arrays.py    its links as arrays of numpy or pyarrow

In: seeds, options named as the command's. Out: CrawledPage, rows as the command prints them.
What always holds: it works inside a running event loop and without one, and whoever stops listening ends the crawl in
order.
"""
