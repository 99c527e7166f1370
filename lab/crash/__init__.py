"""Crawls that are killed, and what must hold afterwards."""
