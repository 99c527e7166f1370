"""Whole crawls on a seeded machine: time, tasks, sockets, disk and messages follow one seed (`xyro lab simulate`).

Everything a node consists of is the real thing: frontier, pool, HTTP client, guard, loader, commit loop, snapshots.
What it stands on is replaced, at the lowest seam there is:

    virtual_loop.py   the event loop: time jumps to the next timer, threads are jobs on the loop, timers are late
    wires.py          TCP: the loop's own sockets, in memory, byte by byte (exchanges.py: what goes over them)
    peers.py          the web: small sites with robots.txt, each with its way of lying, drawn from the seed
    disks.py          the disk: a store in memory and files whose unsynced part a crash may keep or not
    mail.py           the bus: cash between partitions comes late, twice, and in any order
    faults.py         the crash: at any callback, or at the n-th time that a named step of a commit is reached
    lives.py          the lives of one seed                   simulate_lab.py   many seeds, on all cores
    cluster_lives.py  hours of three nodes; each process is a life on the one loop (cluster_loop.py)
      machines.py       a node's directory, and the process on it
      brokers.py        a broker in memory: messages come late, twice or never, a bucket by compare-and-set
      cluster_faults.py they stand still, die, lose the broker, have a full disk, and partitions move meanwhile

A seed is one crawl in several lives: each but the last ends in a crash, a full disk or an orderly stop. After each,
witness.py holds what the store says against what servers and disk have seen; they are no part of the crawler. The same
seed does the same, byte for byte, in any process.
"""
