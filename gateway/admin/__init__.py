"""The admin port, where operators read and change the state of a running gateway.

`admin_app.py` defines the paths. `access/` decides who may use them: the listener bounds
connections, and the middlewares check host, origin, rights and forms, in this order. `reports.py`
has one function for each report. The API sends a report as JSON, the command prints the report as a
table, and `page/` renders it as HTML. Reports and the page are imported by the first request that
needs them.
"""
