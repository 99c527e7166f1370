"""Answers other programs over HTTP on loopback while a crawl runs.

http_api.py    paths, the token, who is answered; routes of plug-ins are added to it
cluster_answers.py  what a node of a cluster answers for all
health.py      GET /health, for supervisors
metrics_listener.py   GET /metrics, for Prometheus, also on an address of its own
endpoints.py   the list of endpoints that a crawling process opens: these, and the listener of plugins/publish
"""
