"""Fields of a JSON body: what a wrong one costs."""

import json
import tracemalloc

import pytest

from draftd.ingest import IngestError
from draftd.transport.http_drafter import Prefix
from draftd.transport.http_explain import Question
from draftd.transport.http_fields import Fields, parsed


@pytest.mark.parametrize(
    ("call", "name"), [(Prefix, "prefix"), (Question, "token_ids"), (Question, "stop_ids"), (Question, "corpora")]
)
def test_of_wrong_items_the_first_alone_takes_memory(call: type[Fields], name: str) -> None:
    body = json.dumps({name: [[]] * 20_000}).encode()
    tracemalloc.start()
    try:
        with pytest.raises(IngestError, match=rf"^{name}\.0: should be a valid (integer|string)$"):
            parsed(body, call)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20, "bytes, 200 for each item"
    finally:
        tracemalloc.stop()
