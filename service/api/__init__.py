"""Answers other programs over HTTP on loopback while a crawl runs.

http_api.py    paths, the token, who is answered; routes of plug-ins are added to it
health.py      GET /health, for supervisors
endpoints.py   the list of endpoints that a crawling process opens: this one, and the listener of plugins/publish
"""
