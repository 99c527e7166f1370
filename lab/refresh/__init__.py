"""Measurements of the refresh policies on computed and recorded changes (`xyro lab refresh`; REFRESH.md for others).

    refresh_lab.py  the command
    world.py        collections whose every change is known     history.py  recorded ones, from files
    sim.py          one run: a rule (rules.py) refreshes a world, with the truth or what it learnt of rates (rates.py)
    compared_policies.py, estimators.py, gamma_belief.py   policies and estimates that only the comparison needs
    executions.py   the two ways in which due pages are found: folders by date, or a scan by index (scan_execution.py)
    copies.py       what the copies are worth, exactly
    known.py        what intervals give with known rates, without a simulation
    refresh_figures.py   every policy on every world    replay.py   on recorded histories    jobs.py   in processes
    rate_trials.py   the estimate of change rates, judged by events
    refresh_claims.py, where.py           which claims hold, and where
    refresh_plots.py, refresh_text.py     the figures as PNG and as text
    live.py         what the copies of a real crawl are worth, as the server sees it
    prediction.py   what the simulator predicts for it, beforehand

In: policies, bandwidths, worlds or histories. Out: freshness and obsolescence of each, as JSON, text and plots.
"""
