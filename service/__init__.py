"""Runs a crawl and answers for it.

    views/   what a crawl looks like at one commit boundary: status, top, why, export, audit, plan
    node/    one process: the loops around partitions, its life from start to stop, its data directory
    cluster/ several nodes over a broker: transport, who owns which partition, questions to all
    api/     its HTTP interface on loopback, and the list of all endpoints of a crawling process
    cli/     the command `xyro`

Each imports only packages listed before it (cli also imports api, which it starts). The plug-ins (plugins/) lie between
node and cluster, and register with views and node.

In: seeds from people, answers of the web, settings (TOML < environment < command line). Out: a data directory, and what
is asked of it.

What always holds: one process writes a data directory, by a lock; an order, an acknowledgement or a transfer leaves
only after the group that caused it is on disk; what a command shows is one commit boundary, never a half-applied group;
a directory that exists can be resumed, audited and exported, whatever killed the process; bad input changes nothing.
"""
