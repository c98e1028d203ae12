"""Store: where counts, history, overrides, cutovers and the audit log outlive a restart.

A lone gateway (`local`) has its counts in memory, and writes what changed to an SQLite file if
`state` names one. Of a fleet (`fleet`), each replica hands in what it counted to PostgreSQL, and
the one that holds the leader's lease (`leader`) adds it up. Both use the same tables, decide by
`gateway.rollout`, and look the same to operators: see `State`. No request waits for a store.
"""
