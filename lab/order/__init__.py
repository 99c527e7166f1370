"""The order of discovery: how much of a web's importance is read early, held against other orders and the best one.

    order_lab.py         `xyro lab order`: the table, by the server's log; ORDER.md tells its figures
    laid_graphs.py       graphs with folders and hosts, computed or from a file
    graph_server.py      serves one on loopback, and logs what is read
    compared_orders.py   other orders, simulated: the oracle, breadth first, Cho's, plain OPIC, backlinks
    served_intervals.py  `xyro lab intervals`: do importance intervals hold in a running crawl of a real graph
    traps.py             sites with a trap beside real pages

In: a graph, a layout, seeds. Out: shares of importance after shares of the reads. What always holds: nothing of the
crawl judges the crawl.
"""
