"""A site whose titles, URLs and texts try to become script in whoever shows them: 200 pages, each in new versions."""

import contextlib
import html
from collections import Counter
from urllib.parse import quote

from aiohttp import web

from tests.plugins.serving import serving

PAYLOADS = (
    "<script>window.PWNED=1</script>",
    "<img src=x onerror=window.PWNED=1>",
    "<svg onload=window.PWNED=1>",
    '"><script>window.PWNED=1</script>',
    "'><img src=x onerror=window.PWNED=1>",
    "</title><script>window.PWNED=1</script>",
    "</textarea><script>window.PWNED=1</script>",
    "javascript:window.PWNED=1",
    "data:text/html,<script>parent.PWNED=1</script>",
    '" autofocus onfocus="window.PWNED=1',
    "' onmouseover='window.PWNED=1",
    "{{constructor.constructor('window.PWNED=1')()}}",
    "${window.PWNED=1}",
    "`-window.PWNED--`",
    "<iframe srcdoc='<script>parent.PWNED=1</script>'></iframe>",
    "<math><mtext></p><style><!--</style><img title='--><img src=x onerror=window.PWNED=1>'>",
    "<noscript><p title='</noscript><img src=x onerror=window.PWNED=1>'>",
    "<details open ontoggle=window.PWNED=1>",
    "<style>@import'//evil.example/x.css';</style>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=javascript:window.PWNED=1'>",
    "<form action=javascript:window.PWNED=1><input type=submit autofocus>",
    "<a href=javascript:window.PWNED=1 id=limit>limit</a>",
    "<input id=wanted name=session><form id=rows>",
    "\u202e>tpircs/<1=DENWP.wodniw>tpircs<",
    "\u2028window.PWNED=1\u2029//",
    "\\x3cscript\\x3ewindow.PWNED=1\\x3c/script\\x3e",
    "&lt;script&gt;window.PWNED=1&lt;/script&gt;",
    "]]><script>window.PWNED=1</script>",
    "--><script>window.PWNED=1</script><!--",
    "*/window.PWNED=1/*",
    "');window.PWNED=1;//",
    '{"__proto__":{"innerHTML":"<img src=x onerror=window.PWNED=1>"}}',
    "__proto__",
    "data: event\n\ndata: {}\n\nevent: failure\ndata: 1\n\n",
    "\x1b]0;PWNED\x07",
    "A" * 3000,
    "\U0001f4a5" * 200,
    "ﷺ" * 100 + "́" * 100,
)
PAGES, HOSTS = 200, 10


class HostileTitles:
    """Page n shows payload n in its title and text, and has it in its path and query."""

    def __init__(self):
        self.port, self.reads, self.reads_of_host = 0, 0, Counter()

    @staticmethod
    def path(number):
        payload = PAYLOADS[number % len(PAYLOADS)][:150]
        return f"/{number}/{quote(payload, safe='()=;:!$*,@')}?q={quote(payload, safe='()=;:!$*,@')}"

    def address(self, number):
        return f"http://127.9.0.{1 + number % HOSTS}:{self.port}{self.path(number)}"

    def body(self, number, entry):
        payload = PAYLOADS[number % len(PAYLOADS)]
        words = " ".join(f"word{number}x{each}" for each in range(30))
        shown = range(PAGES) if entry else range(number, number + 8)
        links = "".join(f"<a href='{html.escape(self.address(each % PAGES))}'>page {each}</a> " for each in shown)
        changing = html.escape(f"{payload} in version {self.reads}")
        title = html.escape(payload)
        return (
            f"<html><head><title>{title} {number}</title></head><body><main><h1>{title}</h1>"
            f"<p>{words}. {changing}. It is a text of some length, so that it is kept.</p></main>{links}</body></html>"
        )

    async def answer(self, request):
        if request.path == "/robots.txt":
            return web.Response(status=404)
        self.reads += 1
        self.reads_of_host[request.host] += 1
        first = request.path.split("/")[1]
        number = int(first) if first.isdigit() else 0
        return web.Response(text=self.body(number, not first), content_type="text/html", charset="utf-8")

    @property
    def entry(self):
        return f"http://127.9.0.1:{self.port}/"

    @contextlib.contextmanager
    def serving(self):
        """In a thread with an event loop of its own."""
        with serving(self.answer, [f"127.9.0.{1 + number}" for number in range(HOSTS)]) as self.port:
            yield self
