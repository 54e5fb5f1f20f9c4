"""Log lines of a real process: level and form."""

import json
import subprocess
import sys

SCRIPT = """
import logging
from draftd.observe import facts, logs
logs.set_up({level!r}, {form!r})
facts.corpus_removed("'docs' of acme", 7)
try:
    1 / 0
except ZeroDivisionError as error:
    facts.call_failed("HTTP /add_external_corpus", error)
"""


def lines_of(level: str, form: str) -> list[str]:
    script = SCRIPT.format(level=level, form=form)
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert finished.stdout == ""
    return finished.stderr.splitlines()


def test_text_lines_hold_time_level_and_message() -> None:
    first = lines_of("info", "text")[0]
    assert first.endswith("INFO    corpus 'docs' of acme removed: 7 tokens")
    assert first[4] == first[7] == "-"


def test_json_lines_are_one_object_each_also_with_a_traceback() -> None:
    removed, failed = map(json.loads, lines_of("info", "json"))
    assert removed["level"] == "info"
    assert removed["message"] == "corpus 'docs' of acme removed: 7 tokens"
    assert failed["level"] == "error"
    assert "ZeroDivisionError" in failed["exception"]


def test_lines_below_the_level_are_not_written() -> None:
    assert len(lines_of("error", "json")) == 1
