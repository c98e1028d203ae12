"""The list of all comparisons, in the order of the results."""

from collections.abc import Mapping

from benchmarks import bodies, connections, small_requests
from benchmarks.scenario import Scenario

SCENARIOS: Mapping[str, Scenario] = {
    "Routed requests, against Envoy": small_requests.routed,
    "Hot modules compiled, against plain Python": small_requests.compiled,
    "Latency at equal load, against Envoy": small_requests.latency,
    "Converted small bodies, against the same unconverted": small_requests.converted,
    "A shadow of all requests at full load, against none": small_requests.shadowed,
    "The gateway, against itself": small_requests.same,
    "A version that ends, against one that stays": small_requests.ending,
    "Traces that sample nothing, against none": small_requests.traced,
    "A state in a file, against none": small_requests.kept,
    "A state in PostgreSQL, against none": small_requests.shared,
    "A configuration with many APIs, against a small one": small_requests.house,
    "Idle connections, against none": connections.idle,
    "A slowloris, against none": connections.slow,
    "An open page and scraped metrics, against none": connections.watched,
    "A chain of five conversions, against one": small_requests.chain,
    "Large bodies streamed, against nginx": bodies.large,
    "Small requests beside large conversions": bodies.array,
    "Conversion alone, against parsing": bodies.lens,
    "Two workers, against one": small_requests.workers,
}
"""All comparisons, by title."""
