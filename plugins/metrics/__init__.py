"""`GET /metrics`: a running crawl as Prometheus reads it, where `[metrics] serve` or `listen` asks for it.

    read_counts.py      counts the reads of a partition, once a commit group
    metric_families.py  those, and what `xyro status` knows, as families of metrics with their help

Units are seconds, bytes and ratios; labels are words of ours, never a host or a URL. service/api/metrics_listener.py
serves the text; configs/ has alert rules (alerts.yml) and a board for Grafana (grafana.json).
"""
