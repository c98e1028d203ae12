"""Functions for published differences that no declared change can describe."""

from typing import Any


def first_assignee(issue: dict[str, Any]) -> dict[str, Any]:
    """Return an issue with its first assignee as a copy; declared changes cannot copy values."""
    assignees = issue["assignees"]
    return {**issue, "assignee": assignees[0] if assignees else None}


def core_rate(limits: dict[str, Any]) -> dict[str, Any]:
    """Return rate limits with a copy of the first one; declared changes cannot copy values."""
    return {**limits, "rate": limits["resources"]["core"]}


def submodules_as_files(contents: Any) -> Any:
    """Return a folder with submodules as files; changes cannot be limited to array bodies."""
    if isinstance(contents, list):
        return [{**one, "type": one["type"].replace("submodule", "file")} for one in contents]
    return contents


def status_of_v1(status: Any) -> Any:
    """Return a status in the format of autoscaling/v1; a Status object has a string instead."""
    if not isinstance(status, dict) or not (metrics := status.get("currentMetrics")):
        return status
    found = {key: value for key, value in status.items() if key != "currentMetrics"}
    percent = metrics[0]["resource"]["current"]["averageUtilization"]
    return {**found, "currentCPUUtilizationPercentage": percent}


def status_of_v2(status: Any) -> Any:
    """Return a status without fields renamed in autoscaling/v2, since clients do not write them."""
    if not isinstance(status, dict):
        return status
    return {key: value for key, value in status.items() if not key.startswith("currentCPU")}


def unchanged(body: Any) -> Any:
    """Return the body unchanged, since clients do not send it."""
    return body
