"""Findings: conditions that need attention, the verdict on retirement, and notifications.

`conditions.py` has two tables: the conditions with their severity, remedy and event, and the
answers to whether a version can be retired with their exit status. `action_items.py` lists the
current findings for the page. `events.py` finds events, `notifications.py` stores their messages
and deliveries in one document of the state, and `notifier.py` sends the messages. `retirement.py`
computes the verdict. All of them read a gateway through `Operator`.
"""
