"""Shows the documents that a crawl keeps (metadata/documents.py), for `xyro xml`, and audits them.

    documents_view.py    get, versions, dtds                  routes.py          the same of a running process
    document_answers.py  single documents, as a running partition is asked for them
    xpath_query.py       an XPath over all documents          version_diff.py    edits between two versions
    warehouse_stats.py   the statistics of P1 section 7       stats_plot.py      their picture
    query_worker.py      the process in which query and diff run, bounded in time and memory; query_child.py is its code
    warehouse_audit.py   every invariant of the repository, for `xyro audit`

What always holds: nothing that a document names is opened; a document that takes too much is left out and counted.
"""
