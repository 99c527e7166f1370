"""The hostile zoo: misbehaviours of servers on raw sockets, a host a case (`xyro lab zoo`).

    zoo_server.py   the servers, the hub that links to all cases, the table of failure classes that are right
    connection.py, framing.py, body_cases.py, link_cases.py, robots_cases.py, name_cases.py, tls_cases.py, xml_cases.py
                    the cases
    name_server.py  the names of those that have one
    interstitials.py  answers in place of pages: challenges, captchas, blocks, login walls
    wall_server.py    hosts that begin to show them
    acts.py         the ways to misbehave, and the sound answers that they spoil

In: cases, as tables. Out: a listener for each, and the failure classes that a crawler must give for it.
"""
