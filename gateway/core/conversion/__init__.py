"""Conversion: the reversible change between two adjacent versions of an API, applied to bodies.

A **field path** names a place in a document. A **change** is declared once and runs both ways, as a
lens does (Ink & Switch, Project Cambria): `up` takes a document to the newer version, `down` to
the older one. A **link** holds the changes between two adjacent versions. A **conversion** is a
chain of links walked in one direction, composed at load.

A document is a JSON value: dict, list, str, int, bool or None. A value may also be *sealed*, left
unparsed because no change may ever look at it; an opener parses it one level deep when one does.
Every function returns a new document and leaves its argument alone.
"""
