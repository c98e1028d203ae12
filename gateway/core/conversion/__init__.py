"""Conversion: reversible changes between adjacent versions of an API, applied to messages.

A **field path** names a place in a document. A **change** is declared once and runs both ways, as a
lens does (Ink & Switch, Project Cambria): `up` takes a document to the newer version, `down` to
the older one. A **link** holds the changes between two adjacent versions. A **conversion** is a
chain of links walked in one direction, composed at load.

A document is a JSON value: dict, list, str, int, bool or None. A value may also be *sealed*: it is
not parsed until a change reads it, and then one level deep. A conversion returns a new document and
does not modify the document that it is given.
"""
