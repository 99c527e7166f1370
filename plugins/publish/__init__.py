"""Publications, WebSub and subscriptions: what publishers tell the crawler, and what it tells subscribers.

    publish_plugin.py   makes the parts of a process: start here  promises.py       publications of one partition
    publishing.py       where publications come together          publish_messages.py   commands to a partition
    listener.py         the HTTP listener that sites talk to      indexnow.py       its IndexNow side, key files and all
    routes.py           the interface of the crawl's owner        websub.py         hubs: leases, deliveries
    subscribed.py       subscriptions of all partitions
    demand.py           how long before a notice pages are read   notices.py        telling subscribers
    compose.py          what a notice says                        notice_outbox.py  which notice goes out next
    publication_rows.py subscriptions as people give them         promise_report.py what `xyro status` tells of them

stored_rows.py has the rows that the plug-in keeps in the store. It takes part in the turns of partitions by hooks
(frontier/hooks.py), from the first publication or subscription on.
The state machines are pure and lie in refresh/ (publications, subscriptions, hub_leases, allowance). What always
holds: what was acknowledged is on disk; a claim is evidence weighed by trust, never a command; one publisher cannot
crowd out the others.
"""
