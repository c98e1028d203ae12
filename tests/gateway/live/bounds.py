"""Reads metrics of a gateway, such as how often clients have reached a limit."""

from contextlib import closing
from http.client import HTTPConnection

from tests.gateway.kit import Program


def bound(program: Program, name: str) -> float:
    """Return from the metrics how often clients have reached a limit."""
    return metric(program, f'gateway_client_bounds_total{{bound="{name}"}}')


def metric(program: Program, series: str) -> float:
    return _sum(program, f"{series} ")


def total(program: Program, name: str) -> float:
    return _sum(program, f"{name}{{")


def _sum(program: Program, start: str) -> float:
    with closing(HTTPConnection("127.0.0.1", program.admin)) as connection:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(start))
