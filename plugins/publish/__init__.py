"""What others tell the crawler, and what it tells them: publications, WebSub, subscriptions, clusters.

    listener.py    the HTTP listener that sites talk to      indexnow.py    its IndexNow side, key files and all
    api.py         the same for people on this machine       websub.py      hubs: subscribing, leases, what they send
    publishing.py  where publications come together          subscribed.py  subscriptions of all partitions
    promises.py    one partition's: deadlines, orders        rows.py        their rows
    notices.py     telling subscribers                       page_clusters.py   named sets that are read together
    watch.py       which known pages a target stands for
    admission.py        how many connections the listener holds
    compose.py     what a notice says                     notice_outbox.py      which notice goes out next: one a host
    services.py     what these need of single.py           demand.py      how long before a notice its pages are read

The state machines are pure and lie in refresh/ (publications, subscriptions, clusters, leases, allowance). What always
holds: what was acknowledged is on disk; a claim is evidence weighed by trust, never a command; one publisher cannot
crowd out the others.
"""
