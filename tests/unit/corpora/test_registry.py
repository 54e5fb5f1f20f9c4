"""The registry of corpora, over a real engine."""

from collections.abc import Iterator

import pytest

from draftd.config import EngineSettings
from draftd.corpora import CorpusRegistry
from draftd.corpora.library import build_index
from draftd.engine import Engine, LimitExceeded
from draftd.ingest import CorpusKey, IngestError
from draftd.ingest.columns import ColumnsBuilder
from draftd.native import Index
from draftd.wire import Namespace

KEY = CorpusKey(tenant="acme", model="m", adapter="", corpus_id="docs")
PLAIN = Namespace("acme", "m")
STATED = Namespace("acme", "m", "f1")


def index_of(*documents: list[int]) -> Index:
    builder = ColumnsBuilder(max_tokens=100)
    for number, document in enumerate(documents):
        builder.add(f"document {number}", document)
    return build_index(builder.build())


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(EngineSettings(max_corpora=1))
    yield engine
    engine.close()


@pytest.fixture
def registry(engine: Engine) -> CorpusRegistry:
    return CorpusRegistry(engine)


def test_an_id_being_loaded_is_taken_until_the_load_ends(registry: CorpusRegistry) -> None:
    with registry.reserve(KEY):
        with pytest.raises(IngestError, match="is being loaded by another call"), registry.reserve(KEY):
            pass
        with pytest.raises(IngestError, match="is still being loaded"):
            registry.remove(KEY, None)
        with registry.reserve(KEY.model_copy(update={"tenant": "other"})):
            pass
    with registry.reserve(KEY):
        registry.publish(KEY, [PLAIN], index_of([1, 2]))
    with pytest.raises(IngestError, match="exists already"), registry.reserve(KEY):
        pass


def test_a_namespace_that_refuses_leaves_none_with_the_corpus(registry: CorpusRegistry, engine: Engine) -> None:
    engine.publish_corpus(STATED, "full", index_of([9]))
    with registry.reserve(KEY), pytest.raises(LimitExceeded):
        registry.publish(KEY, [PLAIN, STATED], index_of([1, 2]))
    assert registry.token_counts(PLAIN) == {}
    # There is room again where it had been published first.
    engine.publish_corpus(PLAIN, "another", index_of([3]))


def test_removal_empties_every_namespace(registry: CorpusRegistry, engine: Engine) -> None:
    with registry.reserve(KEY):
        registry.publish(KEY, [PLAIN, STATED], index_of([1, 2, 3]))
    assert registry.token_counts(PLAIN) == registry.token_counts(STATED) == {"docs": 3}
    assert registry.remove(KEY, None) == 3
    for namespace in (PLAIN, STATED):
        engine.publish_corpus(namespace, "another", index_of([3]))


def test_documents_are_kept_apart() -> None:
    index = index_of([1, 2], [], [3, 4])
    assert (index.tokens, index.documents) == (4, 2)
    assert index.match([2])[0].total == 0  # nothing follows the end of a document
