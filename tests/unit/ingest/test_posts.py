"""Posted bodies: what they may say, and that nothing comes of one that is wrong anywhere."""

from pathlib import Path
from typing import Any

import pytest

from draftd.ingest import SEGMENT, CorpusKey, IngestError
from draftd.wire import Namespace
from tests.unit.ingest.posts import known, load_post, word_tokenizer


def test_token_chunks_are_documents(tmp_path: Path) -> None:
    result = load_post(tmp_path, {"corpus_id": "c", "token_chunks": [[1, 2], [], [3]]})
    assert result.opened.key == CorpusKey(tenant="default", model="default", adapter="", corpus_id="c")
    assert (result.built.documents, result.built.tokens) == (2, 3)
    assert result.documents == [[1, 2], [3]]  # an empty one is none
    assert result.opened.namespaces() == (Namespace(),)


def test_null_is_the_same_as_absent(tmp_path: Path) -> None:
    body = {"corpus_id": None, "file_path": None, "documents": None, "tenant": None, "token_chunks": [[1]]}
    assert load_post(tmp_path, body).opened.key.tenant == "default"


def test_an_absent_id_is_generated_and_differs_each_time(tmp_path: Path) -> None:
    first, second = (load_post(tmp_path, {"token_chunks": [[1]]}).opened.key for _ in range(2))
    assert first.corpus_id
    assert first.corpus_id != second.corpus_id


def test_text_is_tokenized_without_special_tokens(tmp_path: Path) -> None:
    tokenizer = known(word_tokenizer(tmp_path))
    result = load_post(tmp_path, {"documents": ["the cat", "a mat sat"]}, tokenizers=(tokenizer,))
    assert result.documents == [[1, 2], [5, 6, 3]]
    assert result.segment.fingerprint == tokenizer.fingerprint
    assert result.opened.namespaces() == (Namespace(), Namespace(tokenizer=tokenizer.fingerprint))


def test_a_stated_fingerprint_means_exactly_that_namespace(tmp_path: Path) -> None:
    tokenizer = known(word_tokenizer(tmp_path))
    body = {"tokenizer": tokenizer.fingerprint, "token_chunks": [[1]]}
    result = load_post(tmp_path, body, tokenizers=(tokenizer,))
    assert result.opened.namespaces() == (Namespace(tokenizer=tokenizer.fingerprint),)


def test_another_fingerprint_than_the_configured_is_refused_with_both(tmp_path: Path) -> None:
    tokenizer = known(word_tokenizer(tmp_path))
    with pytest.raises(IngestError, match=f"states f00.*have {tokenizer.fingerprint}"):
        load_post(tmp_path, {"tokenizer": "f00", "token_chunks": [[1]]}, tokenizers=(tokenizer,))


def test_the_first_tokenizer_that_serves_the_tenant_and_model_is_used(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    acme = known(word_tokenizer(tmp_path / "other", "mat cat"), tenant="acme")
    everybody = known(word_tokenizer(tmp_path))
    tokenizers = (acme, everybody)
    of_acme = load_post(tmp_path, {"tenant": "acme", "documents": ["cat"]}, tokenizers=tokenizers).documents
    of_another = load_post(tmp_path, {"tenant": "other", "documents": ["cat"]}, tokenizers=tokenizers).documents
    assert (of_acme, of_another) == ([[2]], [[2]])
    of_acme = load_post(tmp_path, {"tenant": "acme", "documents": ["mat"]}, tokenizers=tokenizers).documents
    of_another = load_post(tmp_path, {"tenant": "other", "documents": ["mat"]}, tokenizers=tokenizers).documents
    assert (of_acme, of_another) == ([[1]], [[6]])


def test_a_tokenizer_that_changed_under_the_server_is_refused_with_both_fingerprints(tmp_path: Path) -> None:
    before = known(word_tokenizer(tmp_path))
    after = known(word_tokenizer(tmp_path, "quite other words"))
    with pytest.raises(IngestError, match=f"changed from {before.fingerprint} to {after.fingerprint}"):
        load_post(tmp_path, {"documents": ["the cat"]}, tokenizers=(before,))


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "not JSON"),
        (b'{"token_chunks": [[1]]', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[[1]]", "should be a JSON object"),
        ({}, "exactly one of file_path, documents, token_chunks; given: none"),
        ({"documents": ["a"], "token_chunks": [[1]]}, "exactly one of .* given: documents, token_chunks"),
        ({"token_chunks": []}, "the corpus is empty"),
        ({"token_chunks": [[], []]}, "the corpus is empty"),
        ({"token_chunks": [1, 2]}, "document 0: should be a list of token ids"),
        ({"token_chunks": "12"}, "token_chunks: should be a list"),
        ({"token_chunks": [[1], [2, -1]]}, r"document 1, token 1: id -1 is outside the vocabulary \[0, 2147483647\)"),
        ({"token_chunks": [[2**31 - 1]]}, "document 0, token 0: id 2147483647 is outside"),
        ({"token_chunks": [[1, 2**64]]}, "document 0, token 1: 18446744073709551616 is no token id"),
        ({"token_chunks": [[1], [2], [3, 1.0]]}, "document 2, token 1: 1.0 is no token id"),
        ({"token_chunks": [[True]]}, "document 0, token 0: True is no token id"),
        ({"token_chunks": [[1, "2"]]}, "document 0, token 1: '2' is no token id"),
        ({"token_chunks": [[1, None]]}, "document 0, token 1: None is no token id"),
        ({"documents": [[1, 2]]}, "document 0: should be a string"),
        ({"documents": ["text"]}, "none is configured for tenant 'default' and model 'default': set tokenizers"),
        ({"tenant": "", "token_chunks": [[1]]}, "tenant is empty"),
        ({"model": "", "token_chunks": [[1]]}, "model is empty"),
        ({"tokenizer": "", "token_chunks": [[1]]}, "tokenizer is empty"),
        ({"tenant": 7, "token_chunks": [[1]]}, "tenant: should be a string"),
        ({"corpus_id": "", "token_chunks": [[1]]}, "the id of the corpus, corpus_id, is empty"),
        ({"corpus_id": 7, "token_chunks": [[1]]}, "corpus_id: should be a string"),
        ({"tenent": "acme", "token_chunks": [[1]]}, "'tenent' is unknown; the nearest is 'tenant'"),
        ({"file_path": "/etc/hostname"}, "no directory is configured; set corpora.directories"),
    ],
)
def test_a_wrong_body_is_refused_with_the_place(body: dict[str, Any] | bytes, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(IngestError, match=complaint) as caught:
        load_post(tmp_path, body)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / SEGMENT).exists()


def test_half_a_surrogate_pair_is_no_text(tmp_path: Path) -> None:
    tokenizer = known(word_tokenizer(tmp_path))
    with pytest.raises(IngestError, match="document 1: no valid text at character 3"):
        load_post(tmp_path, b'{"documents": ["the", "cat\\ud800"]}', tokenizers=(tokenizer,))


def test_ids_are_checked_against_the_vocabulary_of_the_tokenizer(tmp_path: Path) -> None:
    tokenizer = known(word_tokenizer(tmp_path))
    with pytest.raises(IngestError, match=r"document 0, token 1: id 7 is outside the vocabulary \[0, 7\)"):
        load_post(tmp_path, {"token_chunks": [[6, 7]]}, tokenizers=(tokenizer,))


@pytest.mark.parametrize("body", [{"token_chunks": [[1, 2], [3]]}, {"documents": ["the cat", "sat"]}])
def test_a_corpus_of_exactly_the_limit_is_taken_and_one_token_more_is_not(body: dict[str, Any], tmp_path: Path) -> None:
    tokenizer = known(word_tokenizer(tmp_path))
    assert load_post(tmp_path, body, max_tokens=3, tokenizers=(tokenizer,)).built.tokens == 3
    with pytest.raises(IngestError, match=r"document 1: the corpus holds more than 2 tokens, .*corpora.max_tokens"):
        load_post(tmp_path, body, max_tokens=2, tokenizers=(tokenizer,))
