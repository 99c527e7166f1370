"""The benchmarks and laboratories that run the whole crawler (lab/ may not import it): `xyro lab ...`.

    speed.py, speed_*.py   what a page, a known URL, an XML document cost      demo.py     the loop beside the truth
    daemon.py              60 simulated days of the daemon over real HTTP      soak.py     half an hour of it, for leaks
    xml_lab.py             an XML-focused crawl against others                 xml_rig.py  real DocBook, DTDs elsewhere

Everything stays on loopback; each prints what it measured and says whether it holds.
"""
