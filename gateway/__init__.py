"""The version gateway: clients choose a version, operators decide where it is served.

The glossary (docs/architecture.md has more of it, and the order of the packages):

API         a family of resources with versions.
Endpoint    a public path of an API, with the mechanisms that select the version there.
Client      the caller of a request, by a name that is counted and that choices depend on; no one
            is authenticated by it.
Reader      takes the raw version values from one place of a request; it decides nothing.
Matching    which version a value names: its own label, a range, or the nearest lower one.
Selection   turns readings into one Version, or into a refusal with a name.
Service     a backend, and its Targets: the addresses where it listens.
Conversion  the reversible difference between two versions; a Change is one declared part of it.
Route       how one version is served at one endpoint: service, path, conversions.
Plan        what will be done with one request.
Snapshot    everything compiled from one configuration, immutable.
Override    what an operator or a gate has set over the configuration: a pause, a percentage.
Lifecycle   when a version is deprecated and when it ends (its sunset).
Brownout    a version refused for a while before its sunset.
Shadow      the same request sent to another version's service too, to compare the answers.
Cutover     the share of a version's clients that another version's service answers; a Gate is a
            bound on its errors, latency or differences that rolls it back.
Exchange    the record of one request, written once: log line, metrics and usage come from it.
Fault       what went wrong with one request, and whose fault it was.

A request passes through `proxy.pipeline`; docs/walks.md follows it.
"""

__version__ = "1.0.0"
