"""`draftd demo --model smollm2` as people run it."""

import os
import re
import subprocess
import sys

from draftd.demo.generation import QUICK_TOKENS
from draftd.demo.prompts import PROMPTS

COLOURS = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
GREEN = "\x1b[32m"
END_OF_LEGEND = "the model's own tokens are not."


def figures(shown: str, name: str) -> tuple[int, int, float, int, int]:
    """Of a row of the table: tokens, forward passes, tokens per pass, drafted, accepted."""
    row = re.search(rf"^{name} +(\d+) +(\d+) +([\d.]+) +(\d+) +(\d+) +[\d.]+ *$", shown, re.MULTILINE)
    assert row is not None, shown
    return int(row[1]), int(row[2]), float(row[3]), int(row[4]), int(row[5])


def test_it_shows_accepted_tokens_in_colour_and_the_figures() -> None:
    command = [sys.executable, "-m", "draftd", "demo", "--quick", "--model", "smollm2"]
    environment = {**os.environ, "FORCE_COLOR": "1"}
    demo = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert demo.returncode == 0, demo.stderr
    assert demo.stderr == ""
    assert GREEN in demo.stdout.split(END_OF_LEGEND)[1].split("forward")[0]

    shown = COLOURS.sub("", demo.stdout)
    for prompt in PROMPTS:
        assert prompt.splitlines()[0] in shown
    tokens, passes, per_pass, drafted, accepted = figures(shown, "draftd")
    assert tokens <= len(PROMPTS) * QUICK_TOKENS
    assert accepted == tokens - passes
    assert drafted >= accepted > 0
    assert per_pass == round(tokens / passes, 2)
    assert figures(shown, "no drafts") == (tokens, tokens, 1.0, 0, 0)
    assert "The text is the same without drafts, token for token." in shown


def test_it_says_at_once_that_it_loads() -> None:
    command = [sys.executable, "-m", "draftd", "demo", "--quick", "--model", "smollm2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as demo:
        assert demo.stdout is not None
        first_line = demo.stdout.readline()
        demo.terminate()
        rest = demo.stdout.read()
    assert (first_line, rest) == ("loading SmolLM2-135M-Instruct ...\n", "")
