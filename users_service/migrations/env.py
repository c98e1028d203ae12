"""What Alembic executes to run the steps, on the connection that `upgrade` was given."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
