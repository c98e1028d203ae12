"""The script that Alembic executes to run revisions, on the connection of `upgrade`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
