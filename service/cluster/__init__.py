"""Makes several alike nodes one crawl: each owns partitions; news of URLs and cash travels between them over NATS.

    broker_link.py       the connection to the broker, which may be lost and comes back
    bucket.py            the placement (wire/placement.py): which node has which partition; changed by compare-and-set
    membership.py        founds a cluster or joins it; the life of a node in it
      node_watch.py        follows the placement while the node runs
      mover.py, arrivals.py  a partition goes to another node while the crawl goes on: the two ends
    transport.py         the bus of a node: messages of partitions to other nodes, in frames that may be lost
      address_turns.py     one node at a time reads at an address that hosts of several share
      couriers.py          messages that nobody would send again: sent until answered
    restore.py           partitions whose node is lost for good come back from backups, or begin anew
    steering.py          who is there, and what a person changes: move, drain, forget, adopt
    gathering.py         questions to all nodes; one moment at which all stand still
    cluster_remote.py    the seam for commands with --join: asks the cluster as `run_file.Remote` asks one process
      node_answers.py      the other end of it, in each node: a request becomes one of the node's own HTTP interface
    broker.py            a broker for whoever has none: `xyro hub` starts nats-server, watches it and stops it
      broker_config.py     its configuration and limits
      broker_secrets.py    its token, and a certificate authority of its own
      broker_check.py      does it answer
    join_target.py       what --join names: a URL, or the folder that `xyro hub` writes

What a command does: `ClusterRemote(url, ca)` has `get`, `post`, `body`, `lines` and `parts` of `Remote`; whichever node
takes the request gathers what all nodes know, and names the partitions that did not answer ("missing").

What always holds: only the node that the placement names opens a partition, at the epoch that its directory carries; a
message of a partition whose epoch is older than the placement's is dropped; nothing depends on a message that arrives.
Beyond loopback nothing crosses without TLS and a token.
"""
