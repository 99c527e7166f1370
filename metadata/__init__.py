"""Stores what is known of pages, on disk and in memory; one synced write batch holds all effects of a turn (a commit
group), so nothing is lost.

In: the effects of a commit group (URLs first met, results of their reads, links, cash, orders). Out: page ids for URLs,
URLs for page ids, rows, links, and a Commit that is written before anything leaves the process.

    rows                every row of the store: the layout of its key, its value <-> bytes (pure)
    states, visits      the page's state machine and its hot columns; the meaning of a report for its page (pure)
    store               LevelDB and its in-memory twin: the only import of plyvel
    columns, url_index  in memory: a numpy column a field, with after-images for the journal; URL -> page, exact
    hosts               hosts, their counters, what politeness must remember, what their reads have cost
    snapshot            the columns in memory, copied to disk while they change
    room                disk space, reserved for mapped files
    partition           Partition: begins and seals a commit group, writes its journal record
    recovery            after a restart: the newest snapshot, then the journal (columns.py encodes it) replayed over it
    salvage, level_log  of a damaged partition: a new one of what is left of it
    directories         locks, directories that are made whole or not at all, shadows of those that are only looked at
    version, format1    the format's number; a partition of the format before, carried over
    documents           the repository: every version of XML and DTDs, each body once

The format has one number (VERSION, 2 now) in the facts of each partition, in the rows that are MessagePack lists, in
journal records and in snapshots; a directory of another number is refused. A partition on disk is

    store/              LevelDB; each family of rows has a prefix byte (the table in rows.py). Map-Data is a u32 time
                        and the URL; Link-Data 4 bytes a child, without a head; a WANTED row is a priority alone
    .witness            number of the last commit group, so that a store which lost its end is not taken for whole
    snapshot-N.bin      columns and fingerprints as of journal record N; the newest two stay

and costs a known page 34 bytes of columns (32 in format 1, whose page flags had 16 bits) and about 17 of the URL index:
cash 8, flow 4, clock 4, birth 4, host 4, due 4, flags 4, state 1, depth 1.

What always holds: ids are dense, and only metadata knows the URL of an id; a reader sees its own process's unwritten
groups; after a crash the directory opens as of the last synced batch.
"""
