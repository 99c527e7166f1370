"""Measurements of the importance algorithms, and the figures of the papers (`xyro lab opic`).

    opic_lab.py            the command
    opic_figures.py        the figures of P2, computed again
      graphs.py              graphs of other sizes and laws    changing_graphs.py     graphs that change
      strategies.py          which pages to read next          history_policies.py    the history policies
      residual.py            what a residual says
    patterns.py            graphs whose importance is known
    focus_lab.py           what weights of pages and links do
    measure.py             any link graph: reads against error
    real.py                a graph from a file, on line and off line
    sharded.py             several partitions (shards.py) and a post that loses, delays, repeats and reorders
    interval_coverage.py   the intervals of importance, fitted and checked
    rank.py                the offline rank at scale, on matrices of matrix_builds.py
    speed.py               nanoseconds a link
    paper_claims.py        which claims of the papers hold
    opic_plots.py, opic_text.py   the figures as PNG and as text

What they run, besides the crawler's own sweep and history:

    selectors.py, buckets.py    which page to spend next, by the papers
    histories.py, slots.py      what is remembered of a page's spendings, by the papers
    names.py                    selectors and histories by the names of the command line
    simulate.py                 OPIC on a graph held in memory: reads against error
    fast.py, spend_kernels.py   the same in machine code (numba, an extra)
    focus_world.py              the same under other terms: classes at the virtual page, weighted links
    growing_crawl.py            a crawl that finds its graph from a seed page, as the frontier runs it
"""
