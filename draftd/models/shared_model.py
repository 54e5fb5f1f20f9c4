"""One copy of a model in the process, and the thread that alone works with it: what comes while it is at work is done
together in its next turn, whoever sent it."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, ClassVar

from transformers import AutoModelForCausalLM

from draftd.models.attention import check_model
from draftd.models.drafting import Ask, Drafter, Style
from draftd.models.growing_tree import Draft
from draftd.models.paged_cache import PagedModel
from draftd.models.slots import KeptText, Slots
from draftd.models.vocabulary import Vocabulary, compared_vocabulary, same_vocabulary
from draftd.observe import facts


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What decides which copy of a model it is."""

    path: str  # or a name of the Hugging Face hub
    device: str  # as torch names it
    dtype: str  # "auto": as the files have it
    kv_tokens: int  # of all texts together, whose keys and values are kept
    piece: int  # the most tokens of a text that are read before it is drafted for
    seed: int  # of what is drawn


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Drafts; those of one style that are wanted in one turn are made together."""

    style: Style
    asks: Sequence[Ask]
    answer: Future[list[Draft]] = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class _Over:
    """Texts that nothing is wanted of any more."""

    texts: Sequence[KeptText]


class SharedModel:
    """Thread-safe. Had by `borrow`, and given back with `release`."""

    _all: ClassVar[dict[ModelOptions, "SharedModel"]] = {}
    _borrowing = Lock()  # guards what is there, and how often it is borrowed

    @classmethod
    def borrow(cls, options: ModelOptions) -> "SharedModel":
        """Loads the model unless the process has it.

        Raises what transformers raises for a model that can't be loaded, and ValueError for one that can't draft here.
        """
        with cls._borrowing:
            if options not in cls._all:
                cls._all[options] = cls(options)
            shared = cls._all[options]
            shared._borrowers += 1
            return shared

    def release(self) -> None:
        """Given back once for each time it was borrowed; after the last it is gone."""
        with self._borrowing:
            self._borrowers -= 1
            if self._borrowers:
                return
            self._queue.put(None)
            self._thread.join()  # before another copy may be loaded beside it
            del self._all[self._options]

    def __init__(self, options: ModelOptions) -> None:
        self._options = options
        self._borrowers = 0
        self._vocabularies: dict[str | None, Vocabulary] = {}
        model = _loaded(options)
        paged = PagedModel(model, options.kv_tokens + 1)  # and NOBODY's
        self._size: int = model.get_input_embeddings().num_embeddings
        longest = min(options.kv_tokens, getattr(model.config.get_text_config(), "max_position_embeddings", 1 << 31))
        self._drafter = Drafter(paged, Slots(options.kv_tokens), options.piece, longest, options.seed)
        self._memory = paged.memory()
        self._queue: SimpleQueue[_Wanted | _Over | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="draftd-draft-model", daemon=True)
        self._thread.start()

    def vocabulary(self, target: str | None) -> Vocabulary:
        """With a target's tokenizer, by path or name; without, all tokens mean the same to both.

        Raises ValueError where too few tokens are shared, and OSError where there is no tokenizer."""
        with self._borrowing:
            if target not in self._vocabularies:
                known = same_vocabulary(self._size)
                if target is not None:
                    known = compared_vocabulary(self._options.path, target, self._size)
                self._vocabularies[target] = known
            return self._vocabularies[target]

    def draft(self, style: Style, asks: Sequence[Ask]) -> list[Draft]:
        """As Drafter.draft, when it is its turn. Raises what kept these drafts, and those made with them, from being
        made."""
        wanted = _Wanted(style, asks)
        self._queue.put(wanted)
        return wanted.answer.result()

    def forget(self, texts: Sequence[KeptText]) -> None:
        self._queue.put(_Over(texts))

    def memory(self) -> int:
        """Bytes of weights, keys and values, divided by those that share them."""
        return self._memory // max(self._borrowers, 1)

    def _run(self) -> None:
        """Takes turns: all that waits, then a piece of what a text is behind."""
        while True:
            turn = self._waiting()
            if None in turn:
                return
            by_style: dict[Style, list[_Wanted]] = {}
            for work in turn:
                if isinstance(work, _Wanted):
                    by_style.setdefault(work.style, []).append(work)
                elif work is not None:  # of nothing in this turn: whoever wants drafts waits for them
                    for text in work.texts:
                        self._drafter.forget(text)
            for style, wanted in by_style.items():
                self._draft(style, wanted)
            if self._drafter.is_behind:
                self._catch_up()

    def _waiting(self) -> list[_Wanted | _Over | None]:
        works = [] if self._drafter.is_behind else [self._queue.get()]
        try:
            while True:
                works.append(self._queue.get_nowait())
        except Empty:
            return works

    def _draft(self, style: Style, works: Sequence[_Wanted]) -> None:
        try:
            drafts = iter(self._drafter.draft(style, [ask for wanted in works for ask in wanted.asks]))
        except BaseException as error:  # noqa: BLE001 - whoever waits has to hear, and the thread to go on
            for wanted in works:
                wanted.answer.set_exception(error)
            return
        for wanted in works:
            wanted.answer.set_result([next(drafts) for _ in wanted.asks])

    def _catch_up(self) -> None:
        try:
            self._drafter.catch_up()
        except BaseException as error:  # noqa: BLE001 - nobody waits for it, and the thread has to go on
            facts.draft_text_given_up(error)


def _loaded(options: ModelOptions) -> Any:
    model = AutoModelForCausalLM.from_pretrained(options.path, dtype=options.dtype, attn_implementation="sdpa")
    check_model(model)
    return model.to(options.device).eval()
