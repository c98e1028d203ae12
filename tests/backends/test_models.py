"""What each version makes of a first and a last name."""

from http import HTTPStatus

import pytest
from pydantic import ValidationError

import backend_v1.model
import backend_v1.problem
import backend_v2.model


@pytest.mark.parametrize(
    ("first", "last", "name"),
    [
        ("Bob", "Charlie", "Bob Charlie"),
        ("Bob", "", "Bob"),
        ("", "Charlie", "Charlie"),
        ("", "", ""),
        ("Anna Maria", "van Dyck", "Anna Maria van Dyck"),
    ],
)
def test_each_version_has_its_shape(first: str, last: str, name: str) -> None:
    v1 = backend_v1.model.Person.of(first, last)
    v2 = backend_v2.model.Person.of(first, last)
    assert v1.model_dump() == {"name": name}
    assert v2.model_dump() == {"name": {"firstName": first, "lastName": last}}


def test_a_person_is_frozen() -> None:
    person = backend_v1.model.Person.of("Bob", "Charlie")
    with pytest.raises(ValidationError, match="frozen"):
        person.name = "Eve"  # type: ignore[misc]  # that it cannot be assigned is the test


@pytest.mark.parametrize(
    ("path", "instance"),
    [("/a%20b/~c:d", "/a%20b/~c:d"), ("//[", "//%5B"), ("/\udcff", "/%FF"), ("/é", "/%C3%A9")],
)
def test_a_problem_names_the_path_as_a_uri(path: str, instance: str) -> None:
    problem = backend_v1.problem.Problem.of(HTTPStatus.NOT_FOUND, "No.", path)
    assert problem.model_dump() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "No.",
        "instance": instance,
        "code": "not_found",
    }
