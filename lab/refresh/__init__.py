"""Measurements of the refresh policies on computed and recorded changes (`xyro lab refresh`; REFRESH.md for others).

    refresh_lab.py  the command
    world.py        collections whose every change is known     history.py  recorded ones, from files
    hard_worlds.py  harder ones: hot, ephemeral, with signals of changes (change_signals.py), polite to hosts
    sim.py          one run: a rule (rules.py) refreshes a world by what it sees (page_arrays.py), with the truth or
                    what it learnt of rates (rates.py, expected_gains.py)
    index_rules.py, adaptive_schedules.py, greedy_ncis.py, mirror_sync.py, learning_to_crawl.py   the rules
    compared_policies.py, estimators.py, gamma_belief.py   indices and estimates that only the comparison needs
    executions.py   the two ways in which due pages are found: folders by date, or a scan by index (scan_execution.py,
                    selection.py: the least, within what hosts allow)
    copies.py       what the copies are worth, exactly
    known.py        what intervals give with known rates, without a simulation
    refresh_figures.py   every policy on every world    replay.py   on recorded histories    jobs.py   in processes
    crawl_replay.py      a crawl's own history, beside what was (`xyro plan --replay`)
    rate_trials.py   the estimate of change rates, judged by events    prior_shapes.py   why `stale` says too much
    refresh_claims.py, quoted_claims.py, where.py   which claims hold, ours and the papers', and where
    refresh_plots.py, refresh_text.py     the figures as PNG and as text
    live.py         what the copies of a real crawl are worth, as the server sees it
    prediction.py   what the simulator predicts for it, beforehand

In: policies, bandwidths, worlds or histories. Out: freshness and obsolescence of each, as JSON, text and plots.
"""
