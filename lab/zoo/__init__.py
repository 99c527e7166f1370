"""Hostile servers, one behaviour each."""
