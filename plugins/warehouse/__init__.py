"""`xyro xml`: looking into the documents that the crawl keeps (metadata/documents.py), and checking them.

    documents_view.py   get, versions, dtds         api.py     the same of a running process
    xpath_query.py   XPath over all documents    version_diff.py    between two versions
    warehouse_stats.py   what P1 section 7 wants     plot.py    its picture
    query_worker.py  the process in which query and diff run, bounded in time and memory; child.py is what runs there
    audit.py   every invariant of the repository

What always holds: nothing that a document names is opened; a document that takes too much is left out and told.
"""
