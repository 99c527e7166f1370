"""Measurements of the cost of a crawl (`xyro lab speed`).

    speed_lab.py    the command
    crawl_speed.py  `latency` and `pages`: whole crawls
    tls_speed.py    `tls`: a crawl of pages as large as real ones, over TLS
    ram_speed.py    `ram`: a known URL in RAM, links a second into the frontier
    scale_speed.py  `scale`: a directory that grows to millions of known URLs; scale_web.py, its computed web;
                    scale_looks.py, looks at it, stopped and running
    plan_speed.py   `plan`: choosing what is read next out of millions of pages
    text_speed.py   `text`: main texts beside what people marked, by library; text_sets.py, public sets of such pages;
                    text_cost.py, the time alone
    xml_speed.py    `xml`: documents a second, and RAM of those that wait
    measures.py     memory, CPU by thread and by part, lag of an event loop

In: sizes, and how many runs. Out: medians with ranges, beside the limits that they must keep.
"""
