"""The schema of the state: its tables, and the revisions that made them, run by Alembic.

A new database gets all tables at once, as the revisions would make them (a test compares the two).
A new revision is a new file in `versions` that names its predecessor; a released revision is never
changed. Gateways of one release and of the next share a database while a fleet is updated, so that
a revision only adds (expand), and what it makes superfluous goes one release later (contract). It
sets the document `serves` to the oldest revision whose gateways can use the schema as it is then.
"""
