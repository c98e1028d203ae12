"""Write the files that are derived from the code, as `make generate` does."""

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
"""The functions that return the text of each derived file, by its path."""


def main() -> None:
    """Write each derived file."""
    for path, text in GENERATED.items():
        (ROOT / path).write_text(text())


if __name__ == "__main__":
    main()
