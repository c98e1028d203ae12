"""The version gateway: clients select a version, and operators decide which service serves it.

These terms are used throughout; docs/architecture.md has the complete glossary and the layers of
packages:

API         a family of resources with versions.
Endpoint    a public path of an API, with the mechanisms that select the version there.
Client      the caller of a request, identified by a name, which a credential may prove.
Reader      reads the raw version values in one place of a request.
Matching    determines the version that a value names: its own label, a range, or the nearest
            lower version.
Selection   combines the values of all readers into one version or a refusal.
Service     a backend; its Targets are the addresses where it listens.
Conversion  the reversible difference between two versions; a Change is one declared part of it.
Route       how one version is served at one endpoint: service, path, conversions.
Plan        the decisions for one request.
Snapshot    everything compiled from one configuration, immutable.
Override    a setting by an operator or a gate that overrides the configuration.
Lifecycle   the dates of a version's deprecation and of its end, the sunset.
Brownout    a limited time before the sunset in which a version is refused.
Shadow      a background copy of a request to another version's service, to compare the responses.
Cutover     the share of a version's clients that another version's service serves; a Gate is a
            limit on errors, latency or differences that rolls it back.
Exchange    the record of one request; the log line, metrics and usage are made from it.
Fault       the error of one request, with the party that caused it.

`gateway/proxy/pipeline.py` processes a request; docs/walks.md follows one through the code.
"""

__version__ = "1.0.0"
