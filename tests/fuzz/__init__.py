"""Fuzzers feed the readers and the HTTP interface made-up input, as long as one likes (`make fuzz SECONDS=600`).

    python -m tests.fuzz --seconds 60 links robots      some of them; without names all share the time
    python -m tests.fuzz --replay links:7:1234          one case again: fuzzer, seed, number

Each case is a function of fuzzer, seed and number. A case that fails is printed as the line that replays it; what it
found becomes a test of its own. tests/fuzz/test_fuzzers.py runs some of each.
"""
