"""Conversions between versions: declared changes, their chains, body formats.

A *change* (`changes/`, one module each) is declared between two adjacent versions and knows both
directions. A *version link* is one entry of `conversions` in gateway.yaml: its changes of bodies,
of query parameters and of header fields, with the messages that they apply to. A *version step* has
all links between two adjacent versions, and the *operations* that have another method, path or
status in the other version.

`declared/` holds the models of gateway.yaml; they compile to links when a configuration is loaded.
`chain.compose` walks from one version to another and returns a `Conversion`, which finds for each
method and status what applies:

- `for_request` and `for_response` return the `BodyConversion` of a body;
- `query`, `fields` and `status` convert what surrounds it;
- `operation_path.find_operation_path` finds the request in each version on the way, where
  operations are declared, and the conversion with the links that are right for it.

A `BodyConversion` runs fused *steps* over a *document*: any JSON value in a *form* that opens it
only as deep as changes look. `formats/` reads bodies into such forms and writes them back:
`whole_body.CONVERSIONS` has one function for each format, and `streams` converts documents that
follow each other. What no change alters keeps its bytes: `original_text` keeps the text of opened
values, repeated keys and white space included.

A change that moves values beside the body (`carry`) needs the *message*: then query and header
fields are converted link by link together with the body.

A value that does not fit raises `ConversionError`, with the place that it had in what the sender
has written: each step leads a place back to where it was before.
"""
