"""The command `init`: writes a first gateway.yaml from OpenAPI documents."""

import asyncio
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

import yaml

from gateway.base.files import system_reason
from gateway.base.mistakes import ConfigError
from gateway.base.urls import is_http_url
from gateway.cli.shared.arguments import CommandError, print_json
from gateway.rules.load import check_file

HELP = "write a first gateway.yaml from OpenAPI documents"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0; 1 the file is written and `check` finds mistakes in it; 2 a document"
        " cannot be used, or the file exists."
    )
    parser.add_argument(
        "documents",
        nargs="+",
        metavar="DOCUMENT",
        help="a file or URL; VERSION=DOCUMENT names its version",
    )
    parser.add_argument(
        "--in",
        dest="place",
        metavar="PLACE",
        help="where requests name the version: path, query:NAME, header:NAME, host:PATTERN or"
        " accept:PATTERN; default: as in the documents",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("gateway.yaml"),
        metavar="FILE",
        help="the file to write, which must not exist; default: gateway.yaml",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: Namespace) -> int:
    # Imported here, since documents need libraries that take long to import.
    from gateway.verify.initial.configuration import configuration, count_differences
    from gateway.verify.initial.outline import Given, outlines, parse_mechanism
    from gateway.verify.openapi.document_source import fetch_texts, parse
    from gateway.verify.openapi.openapi import DocumentError, OpenApiDocument

    out: Path = arguments.out
    mechanism = parse_mechanism(arguments.place) if arguments.place else None
    named = [_label_and_location(text) for text in arguments.documents]
    try:
        texts = asyncio.run(fetch_texts([location for _, location in named], Path()))
        read = {one: OpenApiDocument(parse(text, one), one) for one, text in texts.items()}
    except DocumentError as error:
        raise CommandError(str(error)) from None
    for location, document in read.items():
        if not document.data.get("paths"):
            raise CommandError(
                f"{location}: 'paths' has no operation, and the gateway serves no webhooks; name a"
                " document with operations"
            )
    given = [
        Given(_from_folder(location, out.parent), read[location].data, label)
        for label, location in named
    ]
    found = outlines(given, mechanism)
    lines = [
        f"# Written by `version-gateway init {' '.join(arguments.documents)}`. Each version is",
        "# served by its own service. Each TODO is a difference between two versions.",
        *configuration(found),
    ]
    try:
        with out.open("x") as file:
            file.write("\n".join((*lines, "")))
    except OSError as error:
        raise CommandError(f"{out}: {system_reason(error)}; name another file with --out") from None
    summary, mistakes = "", ""
    try:
        summary = check_file(out, os.environ)[0].summary
    except ConfigError as error:
        mistakes = str(error)
    differences = count_differences(lines)
    if arguments.json:
        apis = {
            one.name: {
                "versions": [each.label for each in one.versions],
                "version": one.mechanism and yaml.safe_load(one.mechanism.written),
            }
            for one in found
        }
        written = {"file": str(out), "apis": apis, "differences": differences}
        print_json(written | {"mistakes": mistakes.splitlines()})
        return 1 if mistakes else 0
    for outline in found:
        place = "no version" if outline.mechanism is None else outline.mechanism.written
        labels = ", ".join(one.label for one in outline.versions if one.label)
        print(f"{outline.name}: {labels and f'versions {labels}; '}{place}")
    print(mistakes or f"{out}: {summary}, {differences} TODO")
    return 1 if mistakes else 0


def _label_and_location(text: str) -> tuple[str | None, str]:
    label, separator, location = text.partition("=")
    return (label, location) if separator and "/" not in label else (None, text)


def _from_folder(location: str, folder: Path) -> str:
    if is_http_url(location):
        return location
    return os.path.relpath(location, folder)
