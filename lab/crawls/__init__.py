"""The benchmarks and laboratories that run the whole crawler (lab/ may not import it): `xyro lab ...`.

    speed.py, speed_*.py   what a page, a known URL, an XML document cost      demo.py     the loop beside the truth
    daemon.py              60 simulated days of the daemon over real HTTP      soak.py     half an hour of it, for leaks
    jumping.py             its clock that jumps to what is due next     meter_checks.py   is `status` right there?
    xml_kinds.py             an XML-focused crawl against others                 xml_rig.py  real DocBook, DTDs
    elsewhere
    promises.py    publications under load (published.py), subscriptions over weeks (subscribed.py)

Everything stays on loopback; each prints what it measured and says whether it holds.
"""
