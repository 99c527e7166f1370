"""The laboratory: webs whose truth is known, to run the crawler against and to measure it by.

The computed web. What comes in is a Shape (seed, sizes, shares, rates) and a time; what goes out are bytes and the
truth about them. `shape` names every setting; `places` says which page is what and under which URL; `graph` draws the
links; `changes` when pages change; `web` ties them together; `prose`, `render` and `render_xml` write the bytes;
`parts` are what documents need beyond their DTDs, `docbook` larger ones; `chance` draws it all from the seed.
`truth` tells what a perfect crawler would know: URLs, links, importance, change rates. `answers` speaks HTTP about it
without sockets; `server` and `access_log` put it on loopback addresses, `child` into a process of its own.

The hostile zoo. `zoo` plays the entries of reliability.md section 2 on raw sockets, a host a case, and tells for each
the failure classes that are right; `zoo_connection`, `zoo_framing`, `zoo_bodies`, `zoo_links` and `zoo_robots` are its
tables, `zoo_acts` the ways to misbehave.

Figures. `opic_lab` is `xyro lab opic`: `opic_figures`, `opic_graphs`, `opic_changes` and `opic_strategies` run the
papers' experiments (`opic_policies`, `opic_patterns`, `opic_focus`, `opic_residual`), `opic_measure` and `opic_real`
any graph, `opic_sharded` one over several partitions (`opic_shards`), `opic_confidence` the intervals; `opic_rank` is
the offline rank at scale on matrices of `opic_matrix`, `opic_speed` the cost on line. `opic_parts` keeps what is
computed; `opic_claims`, `opic_plots` and `opic_text` judge and draw. `refresh_lab` is `xyro lab refresh`:
`refresh_world` has the collections that change (`refresh_history` reads real ones), `refresh_known` needs no
simulation, `refresh_sim` runs a rule of `refresh_rules` on one, with the rates of `refresh_rates`, `refresh_copies`
measures it; `refresh_figures` and `refresh_replay` say what is run, `refresh_jobs` in several processes,
`refresh_claims`, `refresh_where`, `refresh_text` and `refresh_plots` judge; REFRESH.md tells others how to use it.
`resumed` ends both. `live` holds a daemon's copies against the computed web, `prediction` and `executions` say
beforehand what they will be. `crash`, `crash_kill`, `crash_disk`, `crash_check` and `crash_xml` kill a crawl and
compare what became of it; `xml_rig` serves real XML; `speed` has the benchmarks' tools.

What always holds: equal Shapes give equal bytes at equal times, in any process; a page's bytes change exactly when its
version does; every URL can be reached from the entry page by followed links and the Sitemap lines of robots.txt;
nothing here listens or connects beyond 127.0.0.0/8, and nothing reads a clock but through wire.clock.
"""
