"""The store: counts, history, overrides, cutovers and the audit log, which outlive a restart.

A single gateway uses `local`. Replicas of a fleet use `fleet`, and one of them also runs `leader`.
Both have the interface `State`. No request waits for a store.
"""
