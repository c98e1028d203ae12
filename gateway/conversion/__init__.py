"""Conversions between versions: declared changes, their chains, body formats.

A *change* (`changes/`, one module each) is declared between two adjacent versions and converts in
both directions. A *version link* is one entry of `conversions` in gateway.yaml: its changes of
bodies, query parameters and header fields, and the messages that the changes apply to. A *version
step* has all links between two adjacent versions, and the *operations* whose method, path or status
differs between the two versions.

`declared/` holds the models of gateway.yaml, which compile to links when a configuration is loaded.
`chain.compose` returns the `Conversion` from one version to another. It finds the links that apply
to each method and status:

- `for_request` and `for_response` return the `BodyConversion` of a body;
- `query`, `fields` and `status` convert the query, the header fields and the status;
- `operation_path.find_operation_path` finds the operation of a request in each version between the
  two, if operations are declared, and returns the conversion with the links that apply to it.

A `BodyConversion` runs fused *steps* over a *document*. A document is any JSON value in a *form*
that is parsed only as deeply as the changes need. `formats/` parses bodies into documents and
serializes documents: `whole_body.CONVERSIONS` has one function for each format, and `streams`
converts a series of documents. Values that no change alters keep their bytes: `original_text` keeps
the source text of parsed values, including repeated keys and white space.

A change that moves a value between the body and a query parameter or header field (`carry`) needs
the *message*. The query and the header fields are then converted link by link, together with the
body.

A value that does not fit the declared changes raises `ConversionError`. Each step maps the location
in the error back to the location before that step. The error response therefore shows the sender a
location in the body that the sender wrote.
"""
