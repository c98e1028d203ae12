"""Writes the files that are generated from the code. `make generate` runs this script."""

from pathlib import Path

from stack import reference

ROOT = Path(__file__).parents[1]
GENERATED = {
    "gateway.schema.json": reference.schema,
    "docs/bounds.md": reference.bounds_page,
    "docs/bounds-services.md": reference.services_bounds_page,
    "docs/changes.md": reference.changes_page,
    "docs/commands.md": reference.commands_page,
    "docs/environment.md": reference.environment_page,
    "docs/errors.md": reference.errors_page,
    "docs/keys.md": reference.keys_page,
    "docs/metrics.md": reference.metrics_page,
}
"""The function that returns the text of each generated file, by path."""


def main() -> None:
    for path, text in GENERATED.items():
        (ROOT / path).write_text(text())


if __name__ == "__main__":
    main()
