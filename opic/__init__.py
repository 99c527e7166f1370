"""Page importance, computed while crawling (Adaptive OPIC), and the offline reference it must agree with.

P2 is Abiteboul, Preda, Cobena, "Adaptive On-Line Page Importance Computation" (WWW 2003). Here is the arithmetic only:
frontier/ledger.py moves the cash.

What comes in: numpy columns indexed by page (cash, flow, clock of last spending, birth) and the links of the pages
that are spent now, a commit group at a time. What goes out: amounts for the children and the virtual page, new
histories, the importance of every page as if it were read now, and the pages worth spending next.

    cash        integer cash: how a page's cash is shared, the virtual page with its O(1) payout,
                cash that came over links
    focus       the virtual page pays classes of pages unlike shares
    importance  history by interpolation, read-time correction, default history of new pages, the OPIC clock
    contest     a window T that follows the rate at which the web changes
    sweep       which pages are rich enough to spend next: the threshold sweep
    confidence  convergence, a bound on the error, an interval for each page, trends
    snapshots   how wrong importances still are, by how much a sample of them moved
    sites       importance of hosts or domains over the links between them
    graph       a link graph in CSR form and the graphs whose answer is known
    pagerank    offline reference: power iteration, the virtual page's and the small edges' fixpoints
    matrix      the link matrix in CSR form, from a graph or row by row, in RAM or on mapped files
    offline     the offline reference at scale: PageRank, personalised and interest, in place, on two threads
    rank_both   PageRank and interest in one scan of the links
    slices      its distributed form: workers that tell each other values, synchronously or chaotically
    page_parts  numbers of millions of pages, a part of them at a time; sums that are never taken at once
    arrays      names for the column types
    jit, rank_kernels, rank_numpy     inner loops in machine code (numba, an extra), and their twin

The papers' other selectors and histories, and OPIC on a graph held in memory, are in lab/opic.

What always holds: no file, clock or randomness of its own (seeds and generators are arguments); cash is int64 and
conserved to the unit by every function here; same input, same output, so a replayed journal gives the same columns.
"""
