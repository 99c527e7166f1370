"""Lists the endpoints of a crawling process: the HTTP interface, and the listener of publications and WebSub."""

from __future__ import annotations

from xyro.plugins.publish.listener import PUBLISH_ENDPOINT
from xyro.service.api.http_api import HttpApi, listen
from xyro.service.node.endpoint import Endpoint

API_ENDPOINT = Endpoint(lambda settings: listen(settings.api.host, settings.api.port), HttpApi)
ENDPOINTS = (API_ENDPOINT, PUBLISH_ENDPOINT)
"""DIR/run has the address of the first one."""
