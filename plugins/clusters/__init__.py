"""Reads pages together: [[clusters]], within a window, by the most urgent of them.

cluster_messages.py  what partitions tell each other of members and rounds
page_clusters.py     the members of each cluster, and when they are read (arithmetic: refresh/clusters.py)
"""
