"""The version gateway: clients choose a version, operators say where it is served.

The words of this house:

API         a resource family with versions.
Endpoint    a public path of an API, with the mechanism that selects the version there.
Client      who asks, by a name to count and to choose by; it lets nobody in.
Reader      takes the raw version values that a request carries; it decides nothing.
Matching    what names a version beside its label: a later one, a range.
Selection   turns readings into one Version, or into a named refusal.
Service     a backend and its targets.
Conversion  the reversible change between versions of an API, applied to bodies.
Route         how one version is served at one endpoint: service, path, conversions.
Plan        what will be done with one request.
Snapshot    everything compiled from one configuration, immutable.
Shadow      the same request asked of another version's service, to compare the answers.
Cutover     the share of a version's clients that is served via another version already.
Fault       what went wrong with one request, and whose fault it was.
Exchange    the record of one request, written once.

The floors, imports only downward: `core` (pure), `config`, `wire`, `operation`, and on top `app`
and `__main__`. A request walks through `wire.handler`; start reading there.
"""
