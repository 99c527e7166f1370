"""A page for the browser that shows a running crawl: `xyro dashboard` prints a link to it.

    dashboard.html         the page: views, style and script in one file, without a build step
    dashboard_sessions.py  keys of links, used once, and the sessions that they open
    dashboard_feed.py      the events that open pages are sent, made once for all of them
    page_failures.py       failures by class, with samples: `xyro log --errors`
    routes.py              what is answered at /dashboard and below

Everything that the page shows comes from pages of strangers. It is put in place as text, never as markup; a policy that
the browser enforces (CSP, Trusted Types) lets no other script run than the one in the file, by its digest.
"""
