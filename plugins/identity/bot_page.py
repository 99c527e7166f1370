"""The bot page: a page for people who found the crawler in their logs. No script, no request to anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from xyro.plugins.identity.key_directory import PATH

MEANINGS = {
    "search": "to build an index that shows where a page is",
    "ai-input": "to give a model what it needs to answer a question (ai-input)",
    "ai-train": "to train models (ai-train)",
}
"""uses of what is read, as `[identity] purpose` names them"""


@dataclass(frozen=True, slots=True)
class CrawlerFacts:
    """The facts that a bot page tells."""

    token: str
    """product token that robots.txt is asked for"""
    user_agent: str
    contact: str
    """mail address or URL"""
    purposes: tuple[str, ...]
    agent: str
    """origin of the key directory"""
    thumbprint: str


def bot_page(facts: CrawlerFacts) -> str:
    """The page, as HTML."""
    token, contact = escape(facts.token), escape(facts.contact)
    link = contact if "://" in contact else f"mailto:{contact}"
    uses = ", ".join(f"{name}=no" for name in facts.purposes)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{token}, a web crawler</title>
<style>body {{ font: 1rem/1.5 sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem }}
pre {{ background: #eee; color: #111; padding: .5rem; overflow-x: auto }}</style>
</head>
<body>
<h1>{token}, a web crawler</h1>
<p>Requests with the following User-Agent are ours:</p>
<pre>{escape(facts.user_agent)}</pre>
<h2>Who we are</h2>
<p>Write to <a href="{link}">{contact}</a>. Tell us the address of your site; we answer, and stop if you ask us to.</p>
<h2>What we read for</h2>
<p>We read pages {escape("; ".join(MEANINGS[name] for name in facts.purposes))}.</p>
<h2>How to keep us out</h2>
<p>We read robots.txt first, once a day, and keep to it (RFC 9309, Crawl-delay, Content-Signal). To keep us out of all
of your site:</p>
<pre>User-agent: {token}
Disallow: /</pre>
<p>To be read more slowly, one page in ten seconds:</p>
<pre>User-agent: {token}
Crawl-delay: 10</pre>
<p>To say what your pages may not be used for; if that is all that we read for, they are not read:</p>
<pre>User-agent: {token}
Content-Signal: {uses}</pre>
<h2>How to verify that it is us</h2>
<p>We sign requests by Web Bot Auth (HTTP Message Signatures, RFC 9421; Ed25519) for sites that ask for it by an
Accept-Signature header, or for all. A signed request is ours if its signature is good and was made with the key of this
thumbprint (keyid):</p>
<pre>{escape(facts.thumbprint)}</pre>
<p>which is listed in our <a href="{PATH}">key directory</a>. Such a request says where that is:</p>
<pre>Signature-Agent: sig1="{escape(facts.agent)}"</pre>
</body>
</html>
"""
