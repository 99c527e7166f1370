"""Publications, WebSub and subscriptions: what publishers tell the crawler, and what it tells subscribers.

    publish_messages.py what its parts say to each other, and to whom: start here
    promises.py         publications of one partition             notice_pages.py   what notices need of one partition
    publishing.py       where publications come together          subscribing.py    where people subscribe
    listener.py         the HTTP listener that sites talk to      indexnow.py       its IndexNow side, key files and all
    routes.py           the interface of the crawl's owner        websub.py         hubs: leases, deliveries
    subscribed.py       all subscriptions, in partition 0         target_pages.py   the pages that they stand for
    demand.py           how long before a notice pages are read   notices.py        telling subscribers
    compose.py          what a notice says                        notice_outbox.py  which notice goes out next
    publication_rows.py subscriptions as people give them         promise_report.py what `xyro status` tells of them

stored_rows.py has the rows that the plug-in keeps in the store. It takes part in the turns of partitions by hooks
(frontier/hooks.py), from the first publication or subscription on.
The state machines are pure and lie in refresh/ (publications, subscriptions, hub_leases, allowance). What always
holds: what was acknowledged is on disk; a claim is evidence weighed by trust, never a command; one publisher cannot
crowd out the others.
"""
