"""Measurements of the refresh policies on computed and recorded changes."""
