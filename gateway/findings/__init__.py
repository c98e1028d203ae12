"""What needs attention: conditions, the verdict on retirement, and notifications.

`conditions.py` is the table of conditions with their severity, remedy and event, and of the answers
to whether a version can be retired with their exit status. `action_items.py` finds the conditions
that hold and lists them for the page. `notifications.py` finds the events and keeps the delivery of
each in one document of the store, and `notifier.py` sends them. `retirement.py` gives the verdict.
All of them read a gateway through `Operator`.
"""
