"""Computes `xyro rank`, the offline reference over the links that a crawl has stored (P1 section 5).

    rank_input.py        a crawl's pages and links as one stream, of one commit       routes.py    of a running process
    rank_files.py        that stream on mapped files, entries of other partitions resolved
    ranking.py           from a request and those files to a ranking
    rank_workers.py      slices of the matrix on workers over the bus (P1 5.4)
    rank_comparison.py   a ranking beside the crawl's own importance
    rank_progress.py     progress, with an estimated end                              rank_report.py   rows and summary

In: a stopped directory, or the stream of a running process. Out: rows, a summary, and with --keep the column that
`[refresh] guide = "interest"` reads: guide.py puts it in the place of importance.
Computing happens in the command's process, never in the daemon.
"""
