"""The computed web: pages as a function of seed, URL and time; its truth and its servers.

    shape.py        every setting, with its unit and default
    places.py       the kind, the host and the URL of each page
    web_graph.py        the links                       changes.py      the change times
    chance.py       all draws, as pure functions of the seed
    web.py          these together: links, versions, states of a page at a time
    prose.py, render.py, render_xml.py              the bytes of a page
    document_parts.py   what documents need beyond their DTDs: external entities, sound, slow, missing, looping
    padding.py      sizes of real pages, and what fills them    codings.py      br, gzip, zstd
    certificates.py     an authority, and what hosts show over TLS
    truth.py        what a perfect crawler would know: URLs, links, importance, change rates
    answers.py      HTTP over it, without sockets   server.py       on loopback addresses, `xyro lab web`
    scripted.py     a site apart from all this: pages that change at listed times; news_site.py: one of news
    access_log.py   one line a request
    docbook.py      larger documents like DocBook's and a server of them
    xml_rig.py      real DocBook of Debian packages, DTDs on another host

In: a Shape and a time. Out: bytes, status lines, the truth. Every URL can be reached from the entry page by followed
links and the Sitemap lines of robots.txt.
"""
