"""The admin port: what operators read and change in a running gateway.

`admin_app.py` has the paths. `access/` decides who may use them: the listener bounds connections,
the middlewares check host, origin, rights and forms, in this order. `reports.py` has one function
for each report; the API sends its result as JSON, the command prints it as a table, and `page/`
renders it. Reports and the page are imported with the first request that needs them.
"""
