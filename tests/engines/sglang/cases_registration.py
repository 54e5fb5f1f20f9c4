"""The plug-in as SGLang finds it, and what SGLang asks of an algorithm and of a worker, read from its source."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sglang.srt
import torch
from sglang.srt.managers.overlap_utils import FutureMap
from sglang.srt.plugins import load_plugins
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.ngram_worker import NGRAMWorker
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
from sglang.srt.speculative.spec_registry import _assert_custom_spec_algo_conforms

from draftd.adapters.sglang import DraftdAlgorithm
from draftd.adapters.sglang_worker import DraftdWorker, _NoCorpus
from tests.engines.model import model_directory

load_plugins()
NGRAM = SpeculativeAlgorithm.NGRAM
DRAFTD = SpeculativeAlgorithm.from_string("draftd")
SOURCES = sorted(Path(sglang.srt.__path__[0]).rglob("*.py"))
NAMES_OF_ALGORITHMS = {"spec_algorithm", "spec_algo", "_spec_algorithm", "_speculative_algo", "speculative_algo"}


def test_sglang_finds_it() -> None:
    assert isinstance(DRAFTD, DraftdAlgorithm)
    assert (DRAFTD.name, DRAFTD.supports_overlap) == ("DRAFTD", True)
    assert DRAFTD.create_worker(resolved("DRAFTD")) is DraftdWorker
    _assert_custom_spec_algo_conforms(DraftdAlgorithm)


def attributes_read() -> Iterator[str]:
    """Of algorithms, everywhere in SGLang: of what is called one, and of what `from_string` returned."""
    for source in SOURCES:
        text = source.read_text(encoding="utf-8")
        if "spec_algo" not in text and "SpeculativeAlgorithm" not in text:
            continue
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _read_in(function)


def _read_in(function: ast.AST) -> Iterator[str]:
    names = NAMES_OF_ALGORITHMS | {
        _name(target)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_from_string(node.value)
        for target in node.targets
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and (_name(node.value) in names or _is_from_string(node.value)):
            yield node.attr


def _name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _is_from_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "SpeculativeAlgorithm.from_string"


def test_it_has_all_that_sglang_reads_of_an_algorithm() -> None:
    constructors = {"from_string", "register"} | {member.name for member in SpeculativeAlgorithm}
    methods = {name for name in vars(SpeculativeAlgorithm) if not name.startswith("_")} - constructors
    read = {name for name in attributes_read() if not hasattr(str, name)}  # some have only the algorithm's name
    assert {"create_future_map", "carries_draft_hidden_states", "need_topk", "get_platform_worker_cls"} <= read
    assert {"is_none", "is_ngram", "create_worker", "supports_grammar_overlap"} <= read
    assert {name for name in read | methods if not hasattr(DRAFTD, name)} == set()


def test_it_answers_as_ngram_does() -> None:
    answers = {
        name: (getattr(DRAFTD, name)(), getattr(NGRAM, name)())
        for name in vars(SpeculativeAlgorithm)
        if name.startswith(("is_", "supports_", "has_", "need_", "carries_"))
    }
    assert len(answers) > 15
    assert {name: both for name, both in answers.items() if both[0] is not both[1]} == {}


def test_its_future_map_relays_what_was_accepted() -> None:
    pool = type("Pool", (), {"req_to_token": torch.zeros((4, 8), dtype=torch.int32)})()
    future_map = DRAFTD.create_future_map(torch.device("cpu"), pool)
    assert isinstance(future_map, FutureMap)
    assert future_map.spec_algo.is_ngram()


def resolved(algorithm: str, **given: Any) -> ServerArgs:
    """What SGLang makes of its command line."""
    options = {"model_path": str(model_directory()), "device": "cuda", "random_seed": 1}
    arguments = ServerArgs(**options | given, speculative_algorithm=algorithm)
    arguments.resolve_once()
    return arguments


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"device": "cpu"},
        {"attention_backend": "triton", "page_size": 1},
        {"attention_backend": "flashinfer", "page_size": 16},
        {"speculative_ngram_max_bfs_breadth": 1, "page_size": 16, "speculative_num_draft_tokens": 8},
        {"max_running_requests": 7, "enable_mixed_chunk": True, "speculative_num_steps": 3},
        {"enable_lora": True, "lora_paths": [], "max_lora_rank": 8, "lora_target_modules": ["all"]},
    ],
    ids=str,
)
def test_settings_become_what_they_become_with_ngram(given: dict[str, Any]) -> None:
    ours, its = (resolved(algorithm, **given).resolved_dict() for algorithm in ("DRAFTD", "NGRAM"))
    assert {name: value for name, value in its.items() if ours[name] != value} == {"speculative_algorithm": "NGRAM"}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"attention_backend": "triton", "page_size": 16}, "--page-size 16 only the flashinfer backend"),
        ({"tp_size": 2, "attn_dp_size": 2}, "does not support DP attention"),
    ],
)
def test_settings_that_are_refused_with_ngram_too(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match="speculative"):
        resolved("NGRAM", **given)
    with pytest.raises(ValueError, match=complaint):
        resolved("DRAFTD", **given)


def tree_of(thing: Any) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(thing)))


def set_in(method: Any) -> set[str]:
    """The attributes of `self`."""
    return {
        node.attr
        for node in ast.walk(tree_of(method))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _name(node.value) == "self"
    }


def test_the_worker_sets_all_that_ngrams_sets() -> None:
    """Its constructor does not call NGRAM's."""
    assert len(set_in(NGRAMWorker.__init__)) > 10
    assert set_in(NGRAMWorker.__init__) - set_in(DraftdWorker.__init__) == set()


def test_the_stand_in_for_the_corpus_has_all_that_inherited_methods_ask_of_one() -> None:
    """But for calls on external corpora, which SGLang refuses for any algorithm that is not called NGRAM."""
    inherited = {
        name: method
        for name, method in vars(NGRAMWorker).items()
        if inspect.isfunction(method) and name not in vars(DraftdWorker) and "corp" not in name
    }
    asked = {
        node.attr
        for method in inherited.values()
        for node in ast.walk(tree_of(method))
        if isinstance(node, ast.Attribute) and _name(node.value) == "ngram_corpus"
    }
    assert asked
    assert asked - set(vars(_NoCorpus)) == set()
