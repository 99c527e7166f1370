"""Page importance, computed while crawling (P2: Adaptive OPIC), and the offline reference it must agree with.

What comes in: numpy columns indexed by page (cash, flow, clock of last spending, birth) and the links of the pages
that are spent now, a commit group at a time. What goes out: amounts for the children and the virtual page, new
histories, the importance of every page as if it were read now, and the pages worth spending next.

    cash        integer cash: how a page's cash is shared, the virtual page with its O(1) payout
    importance  history by interpolation, read-time correction, default history of new pages, the OPIC clock
    choose      which pages to spend next: the threshold sweep (the crawler's) and its rivals (the laboratory's)
    graph       a link graph in CSR form and the graphs whose answer is known
    pagerank    offline reference: power iteration, the virtual page's and the small edges' fixpoints
    windows     the papers' history policies behind one protocol (laboratory)
    simulate    OPIC on a graph held in memory: reads against error (laboratory)
    discovery   a crawl that finds its graph from a seed, as the page node runs it (laboratory, tests)

What always holds: no file, clock or randomness of its own (seeds and generators are arguments); cash is int64 and
conserved to the unit by every function here; same input, same output, so a replayed journal gives the same columns.
"""
