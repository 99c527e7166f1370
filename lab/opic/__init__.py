"""Measurements of the importance algorithms, and the figures of P2.

    selectors, buckets     which page to spend next: the papers' selectors beside the crawler's sweep
    histories, slots       what is remembered of a page's spendings: the papers' policies beside the crawler's
    names                  selectors and histories by the names of the command line
    simulate               OPIC on a graph held in memory: reads against error
    fast, spend_kernels    the same in machine code (numba, an extra)
    focus_world            the same under other terms: classes at the virtual page, weighted links
    growing_crawl          a crawl that finds its graph from a seed page, as the frontier runs it

The other modules are the commands of `xyro lab opic` and what they share (opic_lab.py lists the commands).
"""
