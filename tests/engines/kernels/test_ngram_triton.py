"""The kernels without a GPU: interpreted, in a process of its own, and compiled for one."""

from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from draftd.kernels import ngram_triton
from draftd.kernels.texts import ARRIVAL_TOKENS, RING
from tests.engines.own_process import run_cases

OF_TEXTS = {"tokens": "*i32", "stride": "i32", "lengths": "*i32", "tapes": "*i32", "arrivals": "*i32", "rows": "*i64"}
SHAPES = {"RING": RING, "ARRIVAL": ARRIVAL_TOKENS}


@pytest.mark.timeout(900)  # all cases are this one
def test_all_cases_in_the_interpreter() -> None:
    """Triton looks at the variable when it is imported, which other engines do here, too."""
    run_cases(Path(__file__).with_name("cases_ngram_triton.py"), TRITON_INTERPRET="1")


@pytest.mark.parametrize("latest", [True, False])
@pytest.mark.parametrize("capability", [80, 90, 100])
def test_the_kernels_compile(latest: bool, capability: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    match = {"keys": "*i64"} | OF_TEXTS | dict.fromkeys(("batch", "min_n", "max_n"), "i32")
    drafted = "*i64" if latest else "*i32"  # int64 in vLLM
    follow = {"keys": "*i64", "drafted": drafted, "counts": "*i32"} | OF_TEXTS | {"most": "i32"}
    append = {"tokens": "*i32", "stride": "i32", "lengths": "*i32", "openings": "*i32", "emitted": "*i64"}
    append |= {"emitted_stride": "i32", "counts": "*i32", "width": "i32", "most": "i32"}
    for kernel, types, constants in (
        (ngram_triton._match, match, SHAPES | {"LATEST": latest, "BATCH": 512, "TILE": 1024}),
        (ngram_triton._follow, follow, SHAPES | {"LATEST": latest, "PAD_WITH_LAST": latest, "MOST": 8}),
        (ngram_triton._append_to_row, append, {"MOST": 16}),
    ):
        signature = types | dict.fromkeys(constants, "constexpr")
        source = ASTSource(kernel, signature, constexprs=constants)
        assert triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["cubin"]
