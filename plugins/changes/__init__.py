"""The stream of changes: recorded with the reads that show them, told to readers and delivered to [[sinks]].

    change_rows.py      the kinds of change, and the rows that are stored: begin here
    change_log.py       records the changes of a partition, in the commit group of their reads
    stored_changes.py   the stream as a partition has it stored: its ends, and stretches of it
    cursors.py          positions of readers, and epochs: a copy of the data begins one
    change_messages.py  what readers ask partitions
    change_stream.py    one reader of all partitions             change_filter.py   conditions: `importance > 2 and ...`
    changed_texts.py    what part of a page's text a change is, and its words, where texts are kept
    sinks.py            delivers changes, each sink at its own pace
    sink_targets.py     files, webhooks, commands                sink_files.py      files that are rolled and cut back
    webhook_client.py   what a webhook is sent by                broker_targets.py   NATS and Kafka
    change_histories.py `xyro export histories`
    change_report.py    what `xyro status` tells of it           routes.py          of a running process

In: the orders that a turn settled (hooks.settled). Out: rows of CHANGE, numbered without holes; JSON lines.
What always holds: a change that anybody has seen is on disk; (partition, epoch, number) names one change for ever; in
each partition changes come in the order of their reads; who misses changes is told which.
"""
