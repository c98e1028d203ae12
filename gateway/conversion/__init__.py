"""Conversions between versions: declared changes, their chains, body formats.

A *change* (`changes/`, one module each) is declared between two adjacent versions and converts in
both directions. A *version link* is one entry of `conversions` in gateway.yaml, and `declared/` has
its models. A *version step* has all links between two adjacent versions, and the *operations* that
differ between them. `chain.compose` returns the `Conversion` from one version to another.

A `BodyConversion` runs fused *steps* over a *document*: a JSON value in a *form* that is parsed
only as deeply as the changes need. `formats/` parses and serializes bodies. Values that no change
alters keep their bytes.

A value that does not fit the declared changes raises `ConversionError`. Each step maps the location
in the error back, so the sender gets a location in the body that it wrote.
"""
