"""Measurements of the importance algorithms, and the figures of P2."""
