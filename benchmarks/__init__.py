"""The benchmark: the gateway beside nginx, HAProxy and Envoy, on this machine, as ratios.

Words. A *system* is a program under test, alone on one core; *load* and *backend* share the other.
A *run* puts load on one system for a few seconds and gives a *sample*. A *comparison* has several
runs. They take turns, and when each has had one, a *round* is over; those of a *pair* are at once.
A *claim* takes one number from a round, mostly a ratio of two of its samples; a *verdict* is that
number over all rounds, and a *goal* says what it should be.

    python -m benchmarks        # or: make bench

From what is to be shown down to what it stands on: `scenarios` says what is compared, `comparison`
plays the rounds, `report` and `chart` write them down; `lab` starts `systems` with the files in
`configs/` and with `rules`, and the load comes from `wrk`, `openloop` and `bulk`.
"""
