"""A webhook that checks who calls it, with the standard library alone: what a receiver would write."""

import base64
import contextlib
import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Webhook(BaseHTTPRequestHandler):
    """Keeps the changes of the requests whose signature holds, answers `status`."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
        wanted = base64.b64encode(hmac.new(server.key, signed, hashlib.sha256).digest()).decode()
        holds = hmac.compare_digest(f"v1,{wanted}", self.headers.get("webhook-signature", ""))
        server.asked += 1
        server.heads.append(dict(self.headers))
        server.forged += not holds
        status = server.status
        if holds and status == 200:
            server.changes += json.loads(body)["changes"]
            server.batches.append((self.headers["webhook-id"], int(self.headers["webhook-timestamp"])))
        self.send_response(status)
        for name, value in server.answer.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def webhook(key=b"a secret", address="127.0.0.1"):
    server = ThreadingHTTPServer((address, 0), Webhook)
    server.key, server.status, server.asked, server.forged, server.changes, server.batches = key, 200, 0, 0, [], []
    server.heads, server.answer = [], {}
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    server.url = f"http://{address}:{server.server_port}/hook"
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
