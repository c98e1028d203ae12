"""The fleet: several gateways that keep one state in PostgreSQL.

**Replica**: one gateway of the fleet, by its name; each start of it has a mark of its own.
**Batch**: what a replica counted since its last one, numbered. **Beat**: the one transaction a
second in which a replica reports, hands in a batch, and reads the overrides. **Judge**: the one
replica that adds batches to the sums and judges cutovers. **Lease**: for how long a replica is the
judge; its token grows with each new judge.

Nothing here is in the path of a request.
"""
