"""Stores what is known of pages, on disk and in memory; one synced write batch holds all effects of a turn (a commit
group), so nothing is lost.

What comes in: the effects of a commit group (URLs first met, what their reads showed, links, cash, orders out). What
goes out: page ids for URLs, URLs for page ids, rows, links, and a Commit to be written before anything leaves the
process.

    rows                every row of the store: the layout of its key, its value <-> bytes (pure)
    states, visits      the page's state machine and its hot columns; what a report means for its page (pure)
    store               LevelDB and its in-memory twin: the only import of plyvel
    columns, url_index  in memory: a numpy column a field, with after-images for the journal; URL -> page, exact
    hosts               hosts, their counters and what politeness must remember
    snapshot            the columns in memory, copied to disk while they change
    room                disk space, reserved for mapped files
    partition           Partition: begins and seals a commit group, writes its journal record
    recovery            after a restart: the newest snapshot, then the journal (columns.py encodes it) replayed over it
    version, format1    the format's number; a partition of the format before, carried over
    documents           the repository: every version of XML and DTDs, each body once

What always holds: ids are dense, and only metadata knows the URL of an id; a reader sees its own process's unwritten
groups; after a crash the directory opens as of the last synced batch.
"""
