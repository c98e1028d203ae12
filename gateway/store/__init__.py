"""The store: counts, history, overrides, cutovers and the audit log, which outlive a restart.

A single gateway (`local`) has its counts in memory, and writes changes to an SQLite file if `state`
names a file. In a fleet (`fleet`), each replica writes its counts to PostgreSQL, and the replica
that holds the leader's lease (`leader`) adds them up. Both use the same tables, decide with
`gateway.rollout`, and have the same interface, `State`. No request waits for a store.
"""
