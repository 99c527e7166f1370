"""A crawl as people see it: at one commit boundary, running or stopped.

    views.py        the crawl at one boundary: rows of pages, links, hosts       export.py      as jsonl, csv, parquet
    status.py, summary.py   the few numbers of `xyro status`                     table.py       rows for people
    why.py, why_due.py, cash_sources.py, told.py   every decision about one URL, in sentences
    why_promised.py, promised.py   of what was promised, and what lateness costs freshness_report.py   how fresh it is
    wait_reasons.py        of loads that wait
    trust.py        how far importances are to be trusted, and their trends      sites.py       sites by importance
    forecast.py     `xyro plan`: bandwidth against freshness                     audit.py       every invariant
    long_views.py   the long ones over HTTP: streamed, aside from the crawl's own work

In: page nodes at a commit boundary. Out: plain rows and sentences. What always holds: nothing here changes a crawl.
"""
