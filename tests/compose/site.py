"""A web for containers: pages that link to each other over several names of one server, and a log of who read what.

    python site.py PAGES      answers on port 8000; a line `TIME HOST PATH` for each request on standard output

A page's links are computed from its number, so nothing is stored: page n shows 12 others, whose numbers are spread by a
multiplication, and each lives on the name `siteK.test` of its number.
"""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOSTS = 6
LINKS = 12
STRIDE = 7_919


def url(page: int) -> str:
    return f"http://site{page % HOSTS + 1}.test:8000/{page}"


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pages = 0

    def do_GET(self) -> None:
        sys.stdout.write(f"{time.time():.3f} {self.headers['Host']} {self.path}\n")
        number = self.path[1:] or "0"
        if not number.isdecimal() or int(number) >= self.pages:
            self.send_error(404)
            return
        targets = [(int(number) * LINKS + step) * STRIDE % self.pages for step in range(1, LINKS + 1)]
        links = "\n".join(f'<p><a href="{url(target)}">page {target}</a></p>' for target in targets)
        body = f"<html><title>{number}</title><body>{links}</body></html>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Said by do_GET."""


if __name__ == "__main__":
    Site.pages = int(sys.argv[1])
    ThreadingHTTPServer(("", 8000), Site).serve_forever()
