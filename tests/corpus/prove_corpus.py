"""Verifies a folder of real OpenAPI documents against themselves, and with planted faults.

Usage: `python -m tests.corpus.prove_corpus FOLDER [FAULTS [WORK]]`, with the number of faults of
each kind in each document, and a folder for temporary files. Each document serves as both versions:
unchanged, with renamed components and an inlined reference, and with one planted fault at a time.
All claims have to hold without a fault. With one, the report has to name its place, and nothing
else. Documents may be compressed (`.json.xz`, `.yaml.xz`). They are not part of the project.
"""

import copy
import json
import lzma
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway.rules.load import load
from gateway.verify.claims import Unproved
from gateway.verify.openapi.document_source import parse
from gateway.verify.proof import ClaimProof
from gateway.verify.verify import VerifyOptions, verify

RULES = """
services: { s: { targets: ["http://127.0.0.1:1"] } }
apis:
  api:
    endpoints: [ { path: "/{rest*}", version: { in: header, name: X-Version } } ]
    versions:
      "1": { via: "2", schema: older.json }
      "2": { service: s, schema: newer.json }
    conversions: [ { between: ["1", "2"], changes: [] } ]
"""
_SUFFIXES = (".json", ".yaml")
KINDS = ("rename", "drop", "retype", "narrow")
_METHODS = ("get", "put", "post", "delete", "patch")


def main() -> int:
    folder, faults = Path(*sys.argv[1:2]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    paths = sorted(one for one in folder.rglob("*") if {*_SUFFIXES} & {*one.suffixes})
    if len(sys.argv) < 2 or not paths:
        print(f"{folder}: no OpenAPI documents; name their folder: make corpus CORPUS=folder")
        return 2
    work = Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp())
    work.mkdir(exist_ok=True)
    total: Counter[str] = Counter()
    for path in paths:
        text = path.read_bytes()
        given = parse(lzma.decompress(text) if path.suffix == ".xz" else text, str(path))
        whole = json.loads(json.dumps(given))  # the keys of YAML may be numbers
        if not whole.get("paths"):
            total["without"] += 1  # only webhooks, which are not checked
            continue
        begin, counts = time.process_time(), Counter[str]()
        for other in (whole, renamed(whole)):
            for one in results(whole, other, work):
                counts["claims"] += 1
                counts["proved"] += isinstance(one, ClaimProof) and one.proved
                if isinstance(one, Unproved) or not one.holds:
                    counts["false"] += 1
                    print(f"{path}: does not hold: {described(one)}")
        rng = random.Random(path.name)
        for kind in KINDS * faults:
            older, newer = copy.deepcopy(whole), copy.deepcopy(whole)
            name = planted(kind, older, newer, rng)
            if name is None:
                continue
            counts["planted"] += 1
            failed = [one for one in results(older, newer, work) if not one.holds]
            fields = [each for one in failed for each in getattr(one, "findings", ())]
            names = {name, f"{name}_renamed"}
            wrong = [each for each in fields if names.isdisjoint(each.field.split("/"))]
            counts["found"] += len(fields) > len(wrong)
            counts["false"] += len(wrong)
            if wrong or not fields:
                print(f"{path}: {kind} {name}: {[(each.field, each.reason) for each in wrong][:3]}")
        seconds = time.process_time() - begin
        print(f"{path.relative_to(folder)}: {dict(counts)}, {seconds:.1f} s", flush=True)
        total += counts
    print(
        f"{total['claims']} claims, {total['proved']} proved without examples;"
        f" {total['found']} of {total['planted']} faults found; false: {total['false']};"
        f" documents with webhooks only: {total['without']}"
    )
    return 1 if total["false"] or total["found"] < 0.95 * total["planted"] else 0


def results(older: Any, newer: Any, work: Path) -> Iterator[ClaimProof | Unproved]:
    (work / "older.json").write_text(json.dumps(older, default=str))
    (work / "newer.json").write_text(json.dumps(newer, default=str))
    for one in verify(load(RULES.encode(), "gateway.yaml", {}, work), work, VerifyOptions()):
        if isinstance(one, ClaimProof) or (isinstance(one, Unproved) and one.kind == "untested"):
            yield one


def described(one: ClaimProof | Unproved) -> str:
    if isinstance(one, Unproved):
        return f"{one.operation} {one.part} {one.status}: {one.reason}"
    reasons = [f"{each.field} {each.reason}" for each in one.findings[:3]]
    return f"{one.claim.operation} {one.claim.part.value} {one.claim.status}: {'; '.join(reasons)}"


def renamed(whole: Any) -> Any:
    """Return a document with other names of components, and with its first reference inlined."""
    place = "#/definitions/" if "swagger" in whole else "#/components/schemas/"
    made = json.loads(json.dumps(whole, default=str).replace(f'"{place}', f'"{place}other.'))
    holder = made if "swagger" in whole else made.get("components", {})
    key = "definitions" if "swagger" in whole else "schemas"
    holder[key] = {f"other.{name}": one for name, one in holder.get(key, {}).items()}
    for one in holder[key].values():
        properties = one.get("properties") or {} if isinstance(one, dict) else {}
        for name, inner in properties.items():
            target = inner.get("$ref", "") if isinstance(inner, dict) else ""
            if target.startswith(place):
                properties[name] = copy.deepcopy(holder[key][target[len(place) :]])
                return made
    return made


def planted(kind: str, older: Any, newer: Any, rng: random.Random) -> str | None:
    """Change one property in one of the documents; return its name, or None without a place."""
    places = [*_places(newer)]
    rng.shuffle(places)
    for steps, name in places:
        one, other = (_at(document, steps)["properties"] for document in (older, newer))
        schema, required = other[name], _at(newer, steps).get("required", [])
        if not isinstance(schema, dict) or schema.get("readOnly") or schema.get("writeOnly"):
            continue
        match kind:
            case "rename" | "drop":
                if kind == "rename":
                    other[f"{name}_renamed"] = other[name]
                del other[name]
                if name in required:
                    required.remove(name)
                    if kind == "rename":
                        required.append(f"{name}_renamed")
            case "retype" if isinstance(schema.get("type"), str) and "enum" not in schema:
                other[name] = {"type": "boolean" if schema["type"] != "boolean" else "string"}
            case "narrow" if len(schema.get("enum", ())) > 1:
                one[name]["enum"] = schema["enum"][1:]
            case "narrow" if schema.get("type") == "string" and len(schema) <= 2:
                one[name]["enum"] = ["narrowed"]
            case _:
                continue
        return name
    return None


def _places(document: Any) -> Iterator[tuple[list[str], str]]:
    """Yield the objects in responses of operations, as steps, with each of their properties."""
    seen: set[str] = set()
    level: list[list[str]] = []
    for path, item in document.get("paths", {}).items():
        for method in _METHODS:
            responses = item.get(method, {}).get("responses", {})
            for status, response in responses.items():
                at = ["paths", path, method, "responses", status]
                for media, content in response.get("content", {}).items():
                    if "json" in media and "schema" in content:
                        level.append([*at, "content", media, "schema"])
                if "schema" in response:
                    level.append([*at, "schema"])
    while level:
        steps = level.pop()
        schema = _at(document, steps)
        if isinstance(schema, dict) and str(schema.get("$ref", "")).startswith("#/"):
            steps = schema["$ref"][2:].split("/")
            schema = _at(document, steps)
        if not isinstance(schema, dict) or "/".join(steps) in seen:
            continue
        seen.add("/".join(steps))
        if isinstance(schema.get("items"), dict):
            level.append([*steps, "items"])
        for name in schema.get("properties") or {}:
            yield steps, name
            level.append([*steps, "properties", name])


def _at(document: Any, steps: list[str]) -> Any:
    for step in steps:
        document = document[step] if step in document else document[int(step)]
    return document


if __name__ == "__main__":
    sys.exit(main())
