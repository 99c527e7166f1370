"""`xyro rank`: the offline reference over the links that a crawl has stored (P1 section 5).

    compute.py   from a crawl and a choice of method to a ranking          told.py      the summary in words
    rank_input.py      a crawl's pages and links as one stream, of one commit    rank_comparison.py   beside the
    crawl's own
    rank_files.py     that stream on mapped files, FOREIGN entries resolved     watch.py     progress, with an
    estimated end
    rank_workers.py   slices of the matrix on workers over the bus (P1 5.4)

In: a stopped directory, or the stream of a running process. Out: rows, a summary, and with --keep the column that
`[refresh] guide = "interest"` reads (turn/guide.py). Computing happens in the command's process, never in the daemon.
"""
