"""What the metrics of a gateway have, such as how often clients have reached a bound."""

from contextlib import closing
from http.client import HTTPConnection

from tests.gateway.kit import Program


def bound(program: Program, name: str) -> float:
    """Return how often a bound on clients was reached, by the metrics."""
    return metric(program, f'gateway_client_bounds_total{{bound="{name}"}}')


def metric(program: Program, series: str) -> float:
    """Return the value of a series, by its name and labels; 0 if there is none."""
    return _sum(program, f"{series} ")


def total(program: Program, name: str) -> float:
    """Return the sum of all series of a name."""
    return _sum(program, f"{name}{{")


def _sum(program: Program, start: str) -> float:
    with closing(HTTPConnection("127.0.0.1", program.admin)) as connection:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(start))
