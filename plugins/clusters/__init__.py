"""Pages that are read together: the clusters of the settings (page_clusters.py)."""
