"""Keeps what pages show, where [keep] asks for it: answers in WARC files, texts by version; and gives them out.

    contents_writer.py   makes sure that what was kept is on disk before the commit group that tells of its read
    text_versions.py     versions of texts: once each, and which are dropped
    retention.py         what goes first where [keep] bytes bounds it
    page_weights.py      importance of every page, packed for who reads the contents from the disk
    page_standing.py     importance, last read and belief of each page, beside its contents
    contents_view.py     gives them out: HTML, texts, versions, files
    routes.py            the same of a running process, over HTTP
    cluster_contents.py  the same of all nodes of a cluster
    text_folder.py       the latest text of each page as a file, brought up to date; page_paths.py: their names
    kept_texts.py        versions of a page's text, and what changed, for the dashboard
    contents_rebuild.py  makes the index of what is kept anew
    contents_report.py   what is kept, for `xyro status`

A reading process writes the records (xyro/page_archive.py, warc_files.py) and the node indexes them
(xyro/contents_index.py), all of it in a directory of its own, DATA/contents: the crawl's store knows nothing of it. The
file `crawl-id` there names the crawl whose contents they are, `archive-id` the disk that they lie on.

What always holds: a record that the index names is on disk; a record is on disk before the commit group of its read; a
kill leaves at most one torn member, at the end of a file, and the next start cuts it off; a disk without room pauses
this, and costs the rest of the crawl nothing.
"""
