"""The admin port, where operators read and change the state of a running gateway.

`admin_app.py` defines the paths, and `access/` decides who may use them. `reports.py` makes the
reports, which the API sends as JSON, commands print as tables, and `page/` renders as HTML.
"""
