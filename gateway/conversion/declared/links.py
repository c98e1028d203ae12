"""Compiles the `conversions` of an API to operations and to links between its versions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from gateway.base.mistakes import Location, Mistakes, place, suggest
from gateway.base.path_templates import Router, Template, parse_template
from gateway.conversion.declared.conflicts import AskedPaths, LinkOverlap, find_conflicts
from gateway.conversion.declared.conversion import (
    ConversionConfig,
    OperationConfig,
    Part,
    compile_statuses,
    operation_entries,
)
from gateway.conversion.declared.groups import GroupConfigs, compile_groups
from gateway.conversion.declared.losses import EndpointUse, warn_of_losses
from gateway.conversion.declared.writes_option import write_rule
from gateway.conversion.operation import (
    MappedOperation,
    OperationPattern,
    Substitute,
    parse_operation,
)
from gateway.conversion.version_step import VersionLink
from gateway.http.upstream.service import Service
from gateway.versions.version import Version

_WRITES = frozenset({"PUT", "PATCH", "POST"})
# Methods without a request body. None stands for all methods, which include GET.
_BODILESS = (None, "GET", "HEAD")
_Pair = tuple[str, str]
_Identity = tuple[str | None, object, object]
"""The identity of an operation: its method, the shape of its path, and its query parameters."""
_Declared = dict[tuple[_Pair, bool], dict[_Identity, tuple[MappedOperation, Location]]]


class _DeclaredOperations:
    """The operations that the conversions of an API declare.

    `applied` has the operations that each conversion applies to, or None for all operations.
    """

    def __init__(
        self,
        conversions: Sequence[tuple[ConversionConfig, Location]],
        services: Mapping[str, Service],
        mistakes: Mistakes,
    ) -> None:
        self._conversions = conversions
        self._services = services
        self._mistakes = mistakes
        self._declared: _Declared = {}
        self._refused: _Declared = {}
        self._built: dict[Location, MappedOperation] = {}
        # Operations that are declared for all methods, but mentioned with a single method, and
        # those in `_within`.
        self._narrowed: set[MappedOperation] = set()
        # Operations that are declared with the rest of their path as a capture, but mentioned with
        # a longer path, by the declared operation.
        self._within: dict[MappedOperation, list[MappedOperation]] = {}
        # If the older version has several operations for one operation of the newer version: the
        # first declared operation, with the further ones.
        self._further: dict[MappedOperation, list[MappedOperation]] = {}
        for config, at in conversions:
            for entry, here in operation_entries(config, at):
                if isinstance(entry, OperationConfig):
                    self._declare(entry, config, here)
        for config, at in conversions:
            for entry, here in operation_entries(config, at):
                if isinstance(entry, str):
                    self._name(entry, config.between, here)
        self._warn_of_narrow_refusals()
        self.applied = [self._of(config, at) for config, at in conversions]

    def warn_unreached(self, paths: Iterable[Template]) -> None:
        shapes = {template.shape: template for template in paths}
        router = Router((template, template) for template in shapes.values())
        # If the API has only two versions, a path may contain the label of one version. Otherwise
        # it must contain {version}.
        between = {config.between for config, _ in self._conversions}
        alone = {
            (at, key): label
            for config, at in self._conversions
            for label, key in zip(config.between, ("older", "newer"), strict=True)
            if len(between) == 1
        }
        seen: set[MappedOperation] = set()
        for at, operation in self._built.items():
            if operation in seen or operation in self._narrowed:
                continue
            seen.add(operation)
            same = operation.newer is operation.older
            for side, key in ((operation.newer, "newer"), (operation.older, "older")):
                if side is None:
                    continue
                path = side.template.fill(dict.fromkeys(side.template.captures, "1"))
                found = router.find(path)
                written = at if same else (*at, key)
                text = f"{side.template.text} is the path of a single version; write {{version}}"
                if found is None:
                    text = f"no endpoint leads to {side.template.text}; operations have the"
                    text += " paths of requests to services"
                elif _names_version(found[1], side.template, alone.get((at[:-2], key))):
                    text += f" where {found[0].text} has it"
                else:
                    continue
                self._mistakes.warn(f"warning: {text}", *written)
                if same:
                    break

    def _of(self, config: ConversionConfig, at: Location) -> tuple[MappedOperation, ...] | None:
        if config.operations is None:
            return None
        for key in ("methods", "paths"):
            if getattr(config, key) is not None:
                self._mistakes.add("operations already state it; remove it", *at, key)
        return tuple(
            dict.fromkeys(
                operation
                for entry, here in operation_entries(config, at)
                if here in self._built
                for operation in self._covered(self._built[here], config.between, entry)
            )
        )

    def _covered(
        self, built: MappedOperation, pair: _Pair, entry: str | OperationConfig
    ) -> Iterator[MappedOperation]:
        yield built
        yield from self._within.get(built, ())
        if isinstance(entry, str):
            yield from self._further.get(built, ())
        if built.newer is None or built.newer.method is not None:
            return
        _, *same = _identity(built.newer)
        for (_, *other), (operation, _) in self._declared.get((pair, True), {}).items():
            # An operation that is declared separately for one method has its own changes. Include
            # it only if the conversion mentions the path without a method.
            if other == same and (isinstance(entry, str) or operation in self._narrowed):
                yield operation
                yield from self._further.get(operation, ())

    def _declare(self, config: OperationConfig, conversion: ConversionConfig, at: Location) -> None:
        sides = {
            key: self._mistakes.attempt(partial(parse_operation, text), *at, key)
            for key, text in (("newer", config.newer), ("older", config.older))
            if text is not None
        }
        if None in sides.values():
            return
        newer, older = sides.get("newer"), sides.get("older")
        if newer is not None and older is not None:
            self._check_both(newer, older, at)
        if config.request_body is not None:
            lacking = newer is None or older is None
            self._check_body(None if lacking else sides[config.request_body], at)
        substitute = self._substitute(config, at)
        statuses = compile_statuses(config.status, self._mistakes.below(*at, "status"))
        body_in_newer = None if config.request_body is None else config.request_body == "newer"
        writes = write_rule(config.writes, self._mistakes.below(*at, "writes"), _WRITES)
        operation = MappedOperation(newer, older, statuses, substitute, body_in_newer, writes)
        for pattern, is_newer in ((newer, True), (older, False)):
            if pattern is not None:
                self._keep(pattern, operation, conversion.between, at, newer=is_newer)
        self._built[at] = operation

    def _keep(
        self,
        pattern: OperationPattern,
        operation: MappedOperation,
        pair: _Pair,
        at: Location,
        *,
        newer: bool,
    ) -> None:
        # A refused operation may be declared at the same path as another operation.
        refused = operation.substitute is not None and operation.substitute.service is None
        declared = self._refused if refused else self._declared
        known = declared.setdefault((pair, newer), {})
        main, first = known.setdefault(_identity(pattern), (operation, at))
        if first == at:
            return
        if newer and pattern.method is not None and None not in (operation.older, main.older):
            # A downgrade uses the first of several operations for this operation.
            self._further.setdefault(main, []).append(operation)
        else:
            self._mistakes.add(
                f"'{pattern.text}' is already declared by {place(first)}; remove one of them", *at
            )

    def _name(self, text: str, pair: _Pair, at: Location) -> None:
        pattern = self._mistakes.attempt(partial(parse_operation, text), *at)
        if pattern is None:
            return
        known = self._declared.setdefault((pair, True), {})
        identity = _identity(pattern)
        if identity not in known:
            whole, first = known.get((None, *identity[1:]), (None, at))
            if whole is None:
                self._warn_of_query(pattern, known, at)
                known[identity] = (self._part_of_declared(pattern, pair), at)
            else:
                operation = _narrowed(whole, pattern.method)
                self._narrowed.add(operation)
                known[identity] = (operation, first)
        self._built[at] = known[identity][0]

    def _part_of_declared(self, pattern: OperationPattern, pair: _Pair) -> MappedOperation:
        """Return the operation with its older form; by default, it is the same in both versions."""
        taken = self._declared.get((pair, False), {}), self._refused.get((pair, False), {})
        found = [
            (one.newer.template.literal, one, older)
            for one, _ in self._declared[pair, True].values()
            if one.newer is not None and (older := _older_form(pattern, one)) is not None
            if not any(_identity(older) in known for known in taken)
        ]
        if not found:
            return MappedOperation(pattern, pattern)
        _, whole, older = max(found, key=lambda each: each[0])
        operation = replace(whole, newer=pattern, older=older)
        self._within.setdefault(whole, []).append(operation)
        self._narrowed.add(operation)
        return operation

    def _warn_of_query(
        self,
        pattern: OperationPattern,
        known: Mapping[_Identity, tuple[MappedOperation, Location]],
        at: Location,
    ) -> None:
        for (method, shape, query), (operation, first) in known.items():
            side = operation.newer
            same = method in (None, pattern.method) and shape == pattern.template.shape
            if same and query and not pattern.query and side is not None:
                self._mistakes.warn(
                    f"warning: is not '{side.text}', which {place(first)} declares;"
                    f" write that operation, or declare '{pattern.text}' as both"
                    " versions have it",
                    *at,
                )

    def _check_both(self, newer: OperationPattern, older: OperationPattern, at: Location) -> None:
        if (newer.method is None) != (older.method is None):
            self._mistakes.add("one side has a method; write one on both sides, or on neither", *at)
        for name in sorted(newer.captures ^ older.captures):
            key, other = ("older", "newer") if name in older.captures else ("newer", "older")
            self._mistakes.add(
                f"'{{{name}}}' is not captured by {other}; both sides need the same captures",
                *at,
                key,
            )
        tails = [_tail(pattern) for pattern in (newer, older)]
        if tails[0] != tails[1]:
            self._mistakes.add("a rest of the path ('{name*}') must be the same on both sides", *at)

    def _check_body(self, pattern: OperationPattern | None, at: Location) -> None:
        if pattern is None:
            text = "is only valid for an operation that both versions have; remove it"
            self._mistakes.add(text, *at, "request_body")
        elif pattern.method in _BODILESS:
            text = f"{pattern.method or 'a path for all methods'} has no body that can be created;"
            self._mistakes.add(
                f"{text} write a method such as POST, or remove it", *at, "request_body"
            )

    def _warn_of_narrow_refusals(self) -> None:
        """Warn if one method is refused at a path that is mapped for all methods.

        A URL in a response matches the refusal, and is then not converted to the path of the other
        version.
        """
        for key, refused in self._refused.items():
            mapped = self._declared.get(key, {})
            for (method, shape, query), (operation, at) in refused.items():
                if method is None or (None, shape, query) not in mapped:
                    continue
                whole, first = mapped[None, shape, query]
                if whole.newer is None or whole.older is None:
                    continue
                own, side = ("newer", "older") if key[1] else ("older", "newer")
                pattern = operation.side(newer=key[1])
                assert pattern is not None  # this version has the refused operation
                self._mistakes.warn(
                    f"warning: links to {pattern.template.text} do not become those of the {side}"
                    f" version by {place(first)}, as {method} is refused here; leave {method} out",
                    *at,
                    own,
                )

    def _substitute(self, config: OperationConfig, at: Location) -> Substitute | None:
        lacking = [key for key in ("newer", "older") if getattr(config, key) is None]
        if len(lacking) == 2:
            self._mistakes.add("names no operation; add newer, older, or both", *at)
            return None
        if not lacking:
            for key in ("service", "refuse"):
                if getattr(config, key) is not None:
                    self._mistakes.add(
                        "is only valid for an operation that one version lacks", *at, key
                    )
            return None
        if (config.service is None) == (config.refuse is None):
            self._mistakes.add(
                f"the {lacking[0]} version lacks it; add service: NAME, or refuse:"
                " { status: 410 }",
                *at,
            )
            return None
        if config.refuse is not None:
            refuse = config.refuse
            return Substitute(None, refuse.status, refuse.detail, refuse.code)
        service = self._mistakes.look_up(
            config.service or "", self._services, "service", *at, "service"
        )
        return None if service is None else Substitute(service)


def _narrowed(operation: MappedOperation, method: str | None) -> MappedOperation:
    newer, older = (
        None if side is None else side._replace(method=method)
        for side in (operation.newer, operation.older)
    )
    return replace(operation, newer=newer, older=older)


def _older_form(pattern: OperationPattern, whole: MappedOperation) -> OperationPattern | None:
    """Return the older form if `whole` is declared with `{rest*}` and includes the operation."""
    newer, older = whole.newer, whole.older
    tail = None if newer is None else _tail(newer)
    if newer is None or older is None or tail is None or newer.query or older.query:
        return None
    if newer.method not in (None, pattern.method):
        return None
    if whole.writes is not None and whole.writes.read is not None:  # its path may need the capture
        return None
    begin = newer.template.text.removesuffix(f"{{{tail}*}}")
    if not pattern.template.text.startswith(begin):
        return None
    rest = pattern.template.text.removeprefix(begin)
    path = older.template.text.removesuffix(f"{{{tail}*}}") + rest
    method = older.method or pattern.method
    return OperationPattern(method, parse_template(path), pattern.query)


def _identity(pattern: OperationPattern) -> _Identity:
    query = frozenset(
        (part.name, part.capture is None, part.value, part.suffix) for part in pattern.query
    )
    return pattern.method, pattern.template.shape, query


def _tail(pattern: OperationPattern) -> str | None:
    return next((part.capture for part in pattern.template.segments if part.tail), None)


def _names_version(captures: Mapping[str, str], template: Template, own: str | None) -> bool:
    """Return whether the path of an operation contains a version label that is not allowed there.

    Args:
        own: The label that the path may contain; None if no label is allowed.
    """
    named = captures.get("version")
    return "version" not in template.captures and named not in (None, own)


class DeclaredLinks:
    """The links between adjacent versions of one API."""

    def __init__(
        self,
        conversions: Sequence[ConversionConfig],
        groups: GroupConfigs,
        versions: Mapping[str, Version],
        services: Mapping[str, Service],
        check_paths: Callable[[Sequence[str], Mistakes], None],
        mistakes: Mistakes,
    ) -> None:
        self._mistakes = mistakes.root
        self._parts: dict[Version, list[Part]] = {}
        located = [
            (conversion, (*mistakes.at, "conversions", index))
            for index, conversion in enumerate(conversions)
        ]
        compiled = compile_groups(groups, mistakes.below("groups"))
        self._operations = _DeclaredOperations(located, services, mistakes.root)
        ascending = list(versions.values())
        for (conversion, at), applied in zip(located, self._operations.applied, strict=True):
            here = mistakes.root.below(*at)
            older, newer = (
                here.look_up(label, versions, "version", "between", place)
                for place, label in enumerate(conversion.between)
            )
            if older is None or newer is None:
                continue
            if older >= newer or ascending.index(newer) != ascending.index(older) + 1:
                text = "name two neighbouring versions, the older one first; the versions are"
                here.add(f"{text} {', '.join(versions)}", "between")
                continue
            check_paths(conversion.paths or (), here)
            link = conversion.compile(older, newer, here, compiled, applied)
            self._parts.setdefault(older, []).append(Part(conversion, at, link, compiled.configs))
        self.links: dict[Version, list[VersionLink]] = {
            older: [part.link for part in some] for older, some in self._parts.items()
        }

    def check(self, asked: AskedPaths, endpoints: Sequence[EndpointUse]) -> None:
        paths = dict.fromkeys(asked)
        self._operations.warn_unreached(path for _, path in paths)
        overlap = LinkOverlap(paths, self.links)
        for part in (part for parts in self._parts.values() for part in parts):
            self._check_captures(part, paths)
            warn_of_losses(part, endpoints, self._mistakes)
        for parts in self._parts.values():
            for index, part in enumerate(parts):
                before = [one for one in parts[:index] if overlap.overlap(one.link, part.link)]
                find_conflicts(part, before, self._mistakes)

    def _check_captures(self, part: Part, paths: AskedPaths) -> None:
        named = part.link.paths
        sides = [one.newer or one.older for one in part.link.operations or ()]
        shared = [side.captures for side in sides if side is not None]
        known = {
            name
            for public, _ in paths
            if named is None or public.text in named
            for name in public.captures
        }
        if shared:
            known |= frozenset.intersection(*shared)
        operations = part.link.operations or ()
        for rule in (part.link.writes, *(one.writes for one in operations)):
            read = frozenset() if rule is None or rule.read is None else rule.read.captures
            for name in sorted(read - known):
                text = f"no path captures '{name}'; {suggest(name, known - {'version'})}"
                self._mistakes.add(f"the operation to read: {text}", *part.at, "writes")
        for change in part.changes():
            capture = change.section.read_capture
            if capture is not None and capture not in known - {"version"}:
                self._mistakes.add(
                    f"no path captures '{capture}'; {suggest(capture, known - {'version'})}",
                    *change.at,
                    "capture",
                )
