"""How often clients have reached a bound, as the metrics of a gateway have it."""

from contextlib import closing
from http.client import HTTPConnection

from tests.gateway.kit import Program


def bound(program: Program, name: str) -> float:
    """Return how often a bound on clients was reached, by the metrics."""
    with closing(HTTPConnection("127.0.0.1", program.admin)) as connection:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    start = f'gateway_client_bounds_total{{bound="{name}"}} '
    return sum(float(line.removeprefix(start)) for line in lines if line.startswith(start))
