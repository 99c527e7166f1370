"""Zoo B: HTTP framing (cases 21 to 47)."""

from __future__ import annotations

from xyro.lab.zoo.acts import HTML, Act, Case, ZooClient, answers, floods, page, response, says

_BODY = page("/ok.html")
_SIZE = len(_BODY)
_NO_LIMIT = ("headers-too-large", "bad-framing", "too-large", "header-timeout", "timeout", "slow-body")


def raw(*headers: str, status: str = "HTTP/1.1 200 OK", body: bytes | str = _BODY) -> bytes:
    """A response of exactly these header lines and this body."""
    data = body.encode() if isinstance(body, str) else body
    return "\r\n".join([status, f"Content-Type: {HTML}", *headers, "", ""]).encode("latin-1") + data


def lengths(*values: str, body: bytes | str = _BODY) -> Act:
    """A response with these Content-Length lines."""
    return says(raw(*(f"Content-Length: {value}" for value in values), body=body))


def chunked(*pieces: bytes) -> bytes:
    """A chunked response without its end."""
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return raw("Transfer-Encoding: chunked", body=chunks)


def _etag_always_new(client: ZooClient) -> bytes:
    return response(_BODY, f'ETag: "{client.nth}"')


def _etag_never_new(client: ZooClient) -> bytes:
    status = "304 Not Modified" if "if-none-match" in client.headers else "200 OK"
    body = "" if status.startswith("304") else page("/ok.html", text=f"Changed {client.nth} times.")
    return response(body, 'ETag: "for ever"', status=status)


def _head_disagrees(client: ZooClient) -> bytes:
    return response("", status="404 Not Found") if client.method == "HEAD" else response(_BODY)


def _retry(status: str, after: str) -> Act:
    return says(response("later", f"Retry-After: {after}", status=status))


CASES = (
    Case(21, "no-status-line", ("bad-status", "bad-framing"), says(_BODY.encode())),
    Case(22, "status-999", ("http-4xx",), says(response(_BODY, status="999 Request denied"))),
    Case(22, "status-99999", ("bad-status", "bad-framing"), says(response(_BODY, status="99999 Odd"))),
    Case(
        23, "early-hints-flood", _NO_LIMIT, floods(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n")
    ),
    Case(
        24,
        "unasked-upgrade",
        ("upgrade",),
        says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"),
    ),
    Case(25, "length-too-long", ("truncated",), lengths(str(_SIZE + 500))),
    Case(26, "length-too-short", ("", "bad-framing"), lengths(str(_SIZE - 8))),
    Case(27, "length-negative", ("bad-framing",), lengths("-5")),
    Case(27, "lengths-differ", ("bad-framing",), lengths(str(_SIZE), str(_SIZE + 7))),
    Case(27, "length-overflow", ("bad-framing", "too-large", "truncated"), lengths("1" + "0" * 30)),
    Case(27, "length-no-number", ("bad-framing",), lengths("many")),
    Case(
        28,
        "length-and-chunked",
        ("bad-framing",),
        says(raw("Content-Length: 5", "Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n")),
    ),
    Case(29, "chunk-size-no-number", ("bad-framing",), says(raw("Transfer-Encoding: chunked", body=b"zz\r\nabc\r\n"))),
    Case(
        29,
        "chunk-size-2^70",
        ("bad-framing", "truncated", "too-large"),
        says(raw("Transfer-Encoding: chunked", body=b"400000000000000000\r\nabc")),
    ),
    Case(30, "no-last-chunk", ("truncated",), says(chunked(_BODY.encode()))),
    Case(31, "endless-chunks", ("too-large",), floods(chunked(), b"1000\r\n" + b"x" * 4096 + b"\r\n")),
    Case(32, "endless-body", ("too-large",), floods(raw(body=_BODY), b"<p>and on and on</p>\n")),
    Case(33, "endless-extension", _NO_LIMIT, floods(raw("Transfer-Encoding: chunked", body=b"5;"), b"name=value;")),
    Case(34, "endless-trailers", _NO_LIMIT, floods(chunked(b"abc") + b"0\r\n", b"X-Trailer: on and on\r\n")),
    Case(35, "header-64k", ("", "headers-too-large"), says(raw("X-Long: " + "x" * 65_536, "Connection: close"))),
    Case(
        36,
        "headers-20000",
        ("headers-too-large",),
        says(raw(*(f"X-{k}: {k}" for k in range(20_000)), "Connection: close")),
    ),
    Case(
        36,
        "cookies-5000",
        ("headers-too-large",),
        says(raw(*(f"Set-Cookie: c{k}={k}" for k in range(5_000)), "Connection: close")),
    ),
    Case(37, "header-nul", ("bad-framing",), says(response(_BODY, "X-Nul: a\0b"))),
    Case(37, "header-bare-cr", ("", "bad-framing"), says(response(_BODY, "X-Return: a\rSet-Cookie: forged=1"))),
    Case(37, "header-latin-1", ("",), says(response(_BODY, "X-Name: caf\xe9 \x9b31m"))),
    Case(38, "header-folded", ("", "bad-framing"), says(response(_BODY, "X-Folded: one\r\n two"))),
    Case(38, "lines-lf-only", ("", "bad-framing"), says(response(_BODY).replace(b"\r\n", b"\n"))),
    Case(39, "204-with-body", ("", "not-readable", "bad-framing"), says(response(_BODY, status="204 No Content"))),
    Case(40, "unasked-206", ("unasked-206",), says(response(_BODY, "Content-Range: bytes 0-9/10", status="206 Part"))),
    Case(
        41,
        "unasked-304",
        ("unasked-304",),
        says(b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nConnection: close\r\n\r\n'),
    ),
    Case(
        42,
        "headers-twice",
        ("", "bad-framing"),
        says(response(_BODY, 'ETag: "one"', 'ETag: "two"', "Content-Type: image/png")),
    ),
    Case(43, "modified-in-future", ("",), says(response(_BODY, "Last-Modified: Fri, 01 Jan 2100 00:00:00 GMT"))),
    Case(43, "modified-year-1", ("",), says(response(_BODY, "Last-Modified: Mon, 01 Jan 0001 00:00:00 GMT"))),
    Case(44, "etag-always-new", ("",), answers(_etag_always_new)),
    Case(44, "etag-never-new", ("",), answers(_etag_never_new)),
    Case(45, "retry-after-huge", ("http-5xx",), _retry("503 Busy", "1" + "0" * 12)),
    Case(45, "retry-after-negative", ("http-429",), _retry("429 Too Many Requests", "-30")),
    Case(45, "retry-after-garbage", ("http-5xx",), _retry("503 Busy", "soon")),
    Case(45, "retry-after-past", ("http-429",), _retry("429 Too Many Requests", "Sat, 01 Jan 2000 00:00:00 GMT")),
    Case(46, "empty-200", ("challenge",), says(response(""))),
    Case(47, "head-disagrees", ("",), answers(_head_disagrees)),
)
