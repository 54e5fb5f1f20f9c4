"""What namespaces learned from their verifiers, on the disk: numbers, no text, in a file beside their own history."""

import threading
import time
from collections.abc import Callable
from functools import partial

from draftd.corpora.histories import HistoryKeeper
from draftd.corpora.publishing import Publisher
from draftd.corpora.upkeep import Attempts
from draftd.storage import CollectionFolder, DamagedError, Store
from draftd.wire import Namespace

REST_SECONDS = 60.0  # from one writing of a namespace's to the next: a crash costs a minute of learning


class LearnedKeeper:
    """A namespace has one model, whatever groups there are. Thread-safe."""

    def __init__(
        self,
        engine: Publisher,
        histories: HistoryKeeper,
        store: Store,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._histories = histories
        self._store = store
        self._clock = clock
        self._kept: dict[Namespace, int] = {}  # lessons of what is on the disk
        self._next: dict[Namespace, float] = {}  # when it may be written again
        self._attempts = Attempts()
        self._lock = threading.Lock()  # of files and engine: nothing that was forgotten is written afterwards

    def restore(self, folder: CollectionFolder) -> None:
        """Gives the engine what lay beside a history. What is damaged is put aside: the namespace begins anew."""
        (namespace,) = folder.manifest.namespaces()
        try:
            saved = folder.learned()
            if saved is None:
                return
            self._engine.restore_learned(namespace, saved)
        except (DamagedError, OSError, ValueError) as error:
            self._store.put_aside(folder.learned_path, f"what {namespace} learned: {error}")
        else:
            self._kept[namespace] = self._engine.lessons().get(namespace, 0)

    def flush(self, *, all_of_it: bool = False) -> None:
        """Writes what was learned, of each namespace no more often than REST_SECONDS unless `all_of_it` is asked for.

        A failure is a log line, and tried again."""
        now = self._clock()
        for namespace, lessons in self._engine.lessons().items():
            if lessons != self._kept.get(namespace) and (all_of_it or now >= self._next.get(namespace, now)):
                self._attempts.run(f"what {namespace} learned", partial(self._keep, namespace, lessons))
                self._next[namespace] = now + REST_SECONDS

    def forget(self, owner: Namespace) -> None:
        """The namespaces of an owner's model and adapter, with a tokenizer stated only its own, begin anew.

        On return no file has what they learned before."""
        with self._lock:
            self._engine.forget_learned(owner)
            for (namespace, group), collection in self._histories.of(owner).items():
                if not group:
                    with collection.lock:
                        collection.folder.forget_learned()
                    self._kept.pop(namespace, None)

    def _keep(self, namespace: Namespace, lessons: int) -> None:
        with self._lock:
            if saved := self._engine.learned(namespace):
                collection = self._histories.own(namespace)
                with collection.lock:
                    collection.folder.keep_learned(saved)
                self._kept[namespace] = lessons
