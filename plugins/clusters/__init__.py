"""Reads pages together: [[clusters]], within a window, by the most urgent of them.

page_clusters.py   who belongs to which cluster, and when it is read (arithmetic: refresh/clusters.py)
"""
