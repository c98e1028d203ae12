"""The admin port, where operators read and change the state of a running gateway.

`admin_app.py` defines the paths. `access/` decides who may use them: the listener limits
connections, and the middlewares check host, origin, rights and form tokens, in this order.
`reports.py` has one function per report. The API sends a report as JSON, commands print it as a
table, and `page/` renders it as HTML. The reports and the page are imported when the first request
needs them.
"""
