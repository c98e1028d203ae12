"""The person that each backend serves."""

import json
from collections.abc import Callable
from importlib import import_module
from subprocess import Popen

import pytest
from aiohttp import ClientSession

Launch = Callable[..., tuple[Popen[str], str]]


@pytest.mark.parametrize(
    ("first", "last", "joined"),
    [
        ("Ada", "Lovelace", "Ada Lovelace"),
        ("Ada", "", "Ada"),
        ("", "Lovelace", "Lovelace"),
        ("Ada", "  ", "Ada"),
        ("Žofie", "木村 🦊", "Žofie 木村 🦊"),
    ],
)
def test_the_environment_sets_the_person(backend: str, first: str, last: str, joined: str) -> None:
    variables = {"PERSON_FIRST_NAME": first, "PERSON_LAST_NAME": last}
    settings = import_module(f"{backend}.settings").Settings.from_environment(variables)
    person = json.loads(import_module(f"{backend}.app").documents(settings)["/person"])
    apart = {"firstName": first.strip(), "lastName": last.strip()}
    assert person == {"name": joined if backend == "backend_v1" else apart}


async def test_the_person_of_the_environment_is_served(backend: str, launch: Launch) -> None:
    _, url = launch({"PERSON_FIRST_NAME": "Žofie", "PERSON_LAST_NAME": "木村 🦊"})
    async with ClientSession() as session, session.get(f"{url}/person") as response:
        person = await response.json()
    apart = {"firstName": "Žofie", "lastName": "木村 🦊"}
    assert person == {"name": "Žofie 木村 🦊" if backend == "backend_v1" else apart}
