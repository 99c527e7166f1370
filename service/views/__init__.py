"""Shows a crawl to people, at one commit boundary, whether it runs or not.

    views.py               a crawl at one boundary: rows of pages, documents, links, hosts; staleness.py: `stale` of all
    importance_bounds.py   intervals and trends of importance        claim_evidence.py   what claims of hosts were worth
    site_ranking.py        sites by the links between them           export.py           rows as jsonl, csv, parquet
    partition_status.py    the figures of one partition        summary.py, freshness_report.py   the fields of
                           `xyro status`, from those of all partitions
    why.py                 `xyro why`: sentences about one URL, of which
                           why_due.py explains its next read, why_score.py its first one, wait_reasons.py a load
                           that waits, cash_sources.py the pages that give it most cash; promises are told by the
                           hooks of plug-ins
    host_standing.py       `xyro hosts`: who takes most, who waits
    limits.py              what limits the speed now, and what is wrong; troubles.py names the hosts and pages
    forecast.py            `xyro plan`: bandwidth against freshness  audit.py            `xyro audit`: every invariant
    extensions.py          the seam through which plug-ins add to audit and status
    text_tables.py         rows and fields as text

In: each partition at a commit boundary. Out: plain rows and sentences. What always holds: nothing here changes a crawl,
knows a process, or imports a plug-in.
"""
