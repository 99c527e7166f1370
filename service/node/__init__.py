"""One process: partition loops, the pool's feed, the load loop, life cycle, data directory, and the reference
wiring."""
