"""Draft sources by name: draftd's own, those that a program registers, and those of installed packages.

A package offers a source by an entry point of the group `draftd.sources`, whose name is the source's. It is imported
when the source is asked for, not before; and so is one of draftd's own that needs packages which draftd does without.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from draftd.sources.checks import faults_of_class
from draftd.sources.source import Need, Source

GROUP = "draftd.sources"
Class = TypeVar("Class", bound=type[Source])


class SourceError(ValueError):
    """A source that can't be registered, found or made; the message names it and says everything that is wrong."""


class Registry:
    """Sources by name. The server's is `REGISTRY`."""

    def __init__(self) -> None:
        self._classes: dict[str, type[Source]] = {}
        self._own: set[str] = set()
        self._unimported: dict[str, tuple[EntryPoint, str]] = {}

    def register(self, name: str, *, own: bool = False) -> Callable[[Class], Class]:
        """Decorates the class of a source; `own`: it comes with draftd.

        Raises SourceError for a class that does not keep to the interface, or a name that is taken."""

        def decorate(candidate: Class) -> Class:
            if self._classes.get(name, candidate) is not candidate or name in self._unimported:
                whose = "draftd's own" if name in self._own else "registered already"
                raise SourceError(f"draft source {name!r} is {whose}: {_path(candidate)} needs another name")
            if faults := faults_of_class(candidate):
                raise SourceError(f"draft source {name!r}, {_path(candidate)}: {'; '.join(faults)}")
            self._classes[name] = candidate
            if own:
                self._own.add(name)
            return candidate

        return decorate

    def offer(self, name: str, path: str, *, extra: str) -> None:
        """One of draftd's own, `module:Class`, that is imported when it is asked for: it needs packages that come with
        this extra of draftd."""
        self._own.add(name)
        self._unimported[name] = EntryPoint(name, path, GROUP), extra

    def names(self) -> list[str]:
        """Of everything that can be asked for; what is installed is not imported for it."""
        return sorted({*self._classes, *self._unimported, *(point.name for point in entry_points(group=GROUP))})

    def find(self, name: str) -> type[Source]:
        """The class of that name. Raises SourceError, also when an installed package claims a name that is taken."""
        offers = list(entry_points(group=GROUP, name=name))
        if offers and name in self._own:
            raise SourceError(f"draft source {name!r} is draftd's own, and {_package(offers[0])} would shadow it")
        if len(offers) > 1:
            raise SourceError(f"draft source {name!r} is offered by {' and by '.join(sorted(map(_package, offers)))}")
        if name in self._unimported:
            self._import_own(name)
        if offers:
            self._load(offers[0])  # also where the name is known: it may be another class's
        if name not in self._classes:
            raise SourceError(f"there is no draft source {name!r}; there are {', '.join(self.names()) or 'none'}")
        return self._classes[name]

    def make(self, name: str, options: Mapping[str, object], offered: frozenset[Need]) -> Source:
        """A new instance, from the options as keyword arguments.

        Raises SourceError where it needs what is not `offered`, refuses its options, or fails."""
        found = self.find(name)
        if lacking := found.nature.needs - offered:
            words = " and ".join(sorted(need.value for need in lacking))
            raise SourceError(f"draft source {name!r} needs {words}, which it can't have here")
        try:
            return found(**options)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plug-in that exits, or panics in Rust, takes nobody with it
            raise SourceError(f"draft source {name!r} does not start: {error}") from error

    def _import_own(self, name: str) -> None:
        point, extra = self._unimported[name]
        try:
            loaded = point.load()
        except ImportError as error:
            raise SourceError(f"draft source {name!r}: {error}; install with: pip install 'draftd[{extra}]'") from error
        del self._unimported[name]
        self.register(name, own=True)(loaded)

    def _load(self, point: EntryPoint) -> None:
        try:
            loaded = point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as in make
            raise SourceError(f"draft source {point.name!r} of {_package(point)} can't be imported: {error}") from error
        self.register(point.name)(loaded)


def _package(point: EntryPoint) -> str:
    return f"package {point.dist.name}" if point.dist else point.value


def _path(candidate: object) -> str:
    return f"{getattr(candidate, '__module__', '')}.{getattr(candidate, '__qualname__', repr(candidate))}"


REGISTRY = Registry()
register = REGISTRY.register
