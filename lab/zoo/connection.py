"""Zoo A: connections (cases 1 to 20). Without what needs names, certificates, networks."""

from __future__ import annotations

from xyro.lab.zoo.acts import HTML, Case, breaks, drips, holds, page, response, says

_SOUND = response(page("/ok.html"))
_HALF = f"HTTP/1.1 200 OK\r\nContent-Type: {HTML}\r\nContent-Length: 100000\r\n\r\n".encode() + b"<p>half" * 100
_KEPT_ALIVE = _SOUND.replace(b"Connection: close\r\n", b"")
_POISON = response(page("/poison.html")).replace(b"Connection: close\r\n", b"")

CASES = (
    Case(1, "silent", ("first-byte-timeout",), holds()),
    Case(2, "header-drip", ("header-timeout",), drips(b"HTTP/1.1 200 OK\r\nX-Drip: ", b"drip-")),
    Case(
        3, "body-drip", ("slow-body",), drips(f"HTTP/1.1 200 OK\r\nContent-Type: {HTML}\r\n\r\n".encode(), b"<p>drip")
    ),
    Case(3, "body-stops", ("slow-body", "timeout"), holds(_HALF)),
    Case(4, "black-hole", ("connect-timeout", "robots-unreachable"), says(b""), socket="blackhole"),
    Case(4, "refused", ("connect-refused", "robots-unreachable"), says(b""), socket="refuse"),
    Case(5, "reset-mid-body", ("disconnect",), breaks(_HALF)),
    Case(5, "reset-before-answer", ("disconnect",), breaks(b"")),
    Case(5, "close-before-answer", ("disconnect",), says(b"")),
    Case(6, "close-unannounced", ("",), says(_KEPT_ALIVE)),
    Case(7, "surplus-answer", ("",), says(_KEPT_ALIVE + _POISON), links=1),
    Case(
        13,
        "spelled-addresses",
        ("",),
        says(response(page("http://0xa9fea9fe/", "http://169.16689662/", "http://[::ffff:169.254.169.254]/"))),
        leads={
            "http://169.254.169.254/": ("blocked-address", "only-net"),
            "http://[::ffff:a9fe:a9fe]/": ("blocked-address", "only-net"),
        },
        links=2,
    ),
    Case(
        15,
        "embedded-addresses",
        ("",),
        says(response(page("http://[64:ff9b::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::]/"))),
        leads={
            "http://[64:ff9b::a9fe:a9fe]/": ("blocked-address", "only-net"),
            "http://[2002:a9fe:a9fe::]/": ("blocked-address", "only-net"),
        },
        links=2,
    ),
    Case(
        16,
        "forbidden-ports",
        ("",),
        says(response(page("http://127.2.255.2:22/", "http://127.2.255.2:6379/"))),
        leads={
            "http://127.2.255.2:22/": ("blocked-port",),
            "http://127.2.255.2:6379/": ("blocked-port", "connect-refused"),
        },
        links=2,
    ),
    Case(18, "tls-stall", ("tls", "connect-timeout", "timeout", "robots-unreachable"), holds(), scheme="https"),
    Case(20, "plain-http-on-https", ("tls", "robots-unreachable"), says(_SOUND), scheme="https"),
    Case(20, "tls-alert-on-http", ("bad-status", "bad-framing"), says(b"\x15\x03\x01\x00\x02\x02\x46")),
)
