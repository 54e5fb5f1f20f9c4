"""The cases of vLLM 0.33, in a process of its own: here vllm is the 0.32 of the engines' environment."""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
VLLM = ROOT / "build/engines/vllm_v2"
PLUGIN = ("-p", "tests.engines.vllm_v2.fixtures")

OF_VLLM = """
from vllm.plugins import load_general_plugins
from vllm.v1.worker.gpu import spec_decode
before = spec_decode.init_speculator
load_general_plugins()
assert spec_decode.init_speculator is before
"""


def test_all_cases_in_vllm_0_33() -> None:
    assert (VLLM / "vllm").is_dir(), "vLLM 0.33 is not there; run make test-engines"
    cases = sorted(str(file.relative_to(ROOT)) for file in FOLDER.glob("cases_*.py"))
    environment = {
        "PYTHONPATH": f"{VLLM}:{ROOT}",
        "DRAFTD_ADAPTER_NGRAM_GPU": "true",
        "TRITON_INTERPRET": "1",
        "CUDA_VISIBLE_DEVICES": "",  # else vLLM leaves Triton out where it sees no driver
        "VLLM_TARGET_DEVICE": "cpu",
    }
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGIN, "-W", "default", "--disable-warnings", "--durations=5", *cases],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    print(run.stdout)
    assert run.returncode == 0, run.stdout[-10_000:] + run.stderr[-2_000:]


def test_vllm_0_32_is_left_as_it_is_and_the_log_says_so() -> None:
    run = subprocess.run(
        [sys.executable, "-c", OF_VLLM],
        cwd=ROOT,
        env=os.environ | {"DRAFTD_ADAPTER_NGRAM_GPU": "true"},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = [line for line in (run.stdout + run.stderr).splitlines() if "draftd" in line]
    assert "vLLM is 0.32.0, and it takes 0.33" in line
    assert "custom_class" in line
