"""The benchmark: the gateway beside Envoy, Caddy, Traefik, nginx and HAProxy on one machine.

A *system* is a program under test, alone on one core. The *load* generator and the *backend* share
the other core. A *run* puts load on one system for a few seconds, and returns a *sample*. A
*comparison* has several runs. In a *round*, each run takes place once, in a changing order; the
systems of a *pair* run at the same time. A *claim* is a number of a round, mostly the ratio of two
samples. A *verdict* has this number for all rounds, and a *goal* is the bound for its median.

    python -m benchmarks        # or: make bench

`scenarios` lists the comparisons, `comparison` runs the rounds, and `report` and `chart` write the
results. `lab` starts the `systems`, with the files in `configs/` and the configurations of `rules`.
`wrk`, `openloop` and `bulk` generate the load.
"""
