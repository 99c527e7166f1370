"""The order of discovery: how much of a web's importance is read early, held against other orders and the best one.

traps.py    sites with a trap beside real pages
"""
