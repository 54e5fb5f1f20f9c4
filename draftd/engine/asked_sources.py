"""The draft sources that the server asks beside the indexes: which is asked for whose requests, and its instances."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock, Thread

from draftd.config import SourceSettings
from draftd.engine.worth import Worth
from draftd.observe import facts
from draftd.sources import REGISTRY, GuardedSource, Need, Source, SourceError
from draftd.wire import Namespace

OFFERED = frozenset({Need.TOKENS, Need.HIDDEN_STATES, Need.DEVICE})


@dataclass(frozen=True, slots=True)
class AskedSource:
    """A source's instance for one namespace."""

    guarded: GuardedSource
    worth: Worth
    seconds: float
    """That a step waits for it, at most."""


class AskedSources:
    """An instance for each namespace, made when its first request opens: on a thread, for that may take as long as to
    load a model. Thread-safe."""

    def __init__(self, settings: Sequence[SourceSettings]) -> None:
        """Raises SourceError where one of them can't be made; it is for the first namespace that needs it."""
        self._settings = settings
        self._lock = Lock()
        self._of: dict[Namespace, AskedSource | None] = {}  # None: it is being made, or could not be
        self._closed = False
        made: dict[int, Source] = {}
        try:
            for place, one in enumerate(settings):
                made[place] = _made(one)
        except SourceError:
            for source in made.values():
                source.close()
            raise
        self._spare = made
        self._reads_states = [Need.HIDDEN_STATES in source.nature.needs for source in made.values()]  # by setting

    def reads_states(self, tenant: str, model: str) -> bool:
        """Whether the source for that tenant's model reads the target's hidden states."""
        place = self._place(tenant, model)
        return place is not None and self._reads_states[place]

    def any_for(self, namespace: Namespace) -> bool:
        """Whether a source is to be asked for its requests; from the first time on its instance is made."""
        if (place := self._place(namespace.tenant, namespace.model)) is None or self._closed:
            return False
        with self._lock:
            if namespace in self._of:
                return True
            spare = self._spare.pop(place, None)
            self._of[namespace] = None if spare is None else self._guarded(place, spare)
        if spare is None:
            Thread(target=self._make, args=(namespace, place), name="draftd-source-maker", daemon=True).start()
        return True

    def of(self, namespace: Namespace) -> AskedSource | None:
        """None: it is not there yet, or could not be made."""
        return self._of.get(namespace)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            guarded = [one.guarded for one in self._of.values() if one is not None]
            spare = [self._guarded(place, source).guarded for place, source in self._spare.items()]
            self._of.clear()
            self._spare.clear()
        for source in (*guarded, *spare):
            source.close()

    def _place(self, tenant: str, model: str) -> int | None:
        """Of the settings' first that fits."""
        fits = (one.is_of(tenant, model) for one in self._settings)
        return next((place for place, it_fits in enumerate(fits) if it_fits), None)

    def _make(self, namespace: Namespace, place: int) -> None:
        try:
            asked = self._guarded(place, _made(self._settings[place]))
        except SourceError as error:
            facts.source_not_made(str(namespace), error)
            return
        with self._lock:
            if not self._closed:
                self._of[namespace] = asked
                return
        asked.guarded.close()

    def _guarded(self, place: int, source: Source) -> AskedSource:
        one = self._settings[place]
        return AskedSource(GuardedSource(one.name, source), Worth(one.least_gain), one.milliseconds / 1000)


def _made(settings: SourceSettings) -> Source:
    """Raises SourceError also for one that would never be asked."""
    least = REGISTRY.find(settings.name).nature.micros(1) / 1000
    if least > settings.milliseconds:
        raise SourceError(
            f"draft source {settings.name!r} says that a call takes {least:g} ms, and sources.milliseconds is "
            f"{settings.milliseconds:g}: it would never be asked"
        )
    return REGISTRY.make(settings.name, settings.options, OFFERED)
