"""HTTP on loopback: what commands and tools ask of a running process."""
