"""The file of an adaptive schedule: what is read, and what an error says."""

import json
import re
from pathlib import Path

import pytest

from draftd.pacing.schedule_table import Slot, read_table, shipped_table


def written(folder: Path, text: str) -> Path:
    file = folder / "schedule.json"
    file.write_text(text)
    return file


def test_the_shipped_table() -> None:
    assert shipped_table() == {
        1: Slot(candidate_steps=(1, 3, 5, 7), down_hysteresis=-0.25),
        8: Slot(candidate_steps=(0, 1, 3), down_hysteresis=0),
        32: Slot(candidate_steps=(0, 1), down_hysteresis=0),
        64: Slot(candidate_steps=(0,), down_hysteresis=0),
    }


def test_a_slot_of_steps_alone_has_the_defaults(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, '{"4": {"candidate_steps": [3, 1, 3]}}'))
    assert table == {4: Slot((1, 3), 0.2, 5, 10, 0.0, -0.25, 0.0)}


def test_options_beside_the_slots_hold_for_those_that_say_nothing(tmp_path: Path) -> None:
    file = {
        "strategy": "ema",
        "ema_alpha": 0.5,
        "update_interval": 2,
        "warmup_batches": 0,
        "up_hysteresis": 0.1,
        "ceiling_coeff": 2,
        "8": {"candidate_steps": [0, 1], "ema_alpha": 1, "update_interval": 7},
        "1": {"candidate_steps": [1], "warmup_batches": 3, "down_hysteresis": -1, "ceiling_coeff": 0},
    }
    assert list(read_table(written(tmp_path, json.dumps(file))).items()) == [
        (1, Slot((1,), 0.5, 2, 3, 0.1, -1.0, 0.0)),
        (8, Slot((0, 1), 1.0, 7, 0, 0.1, -0.25, 2.0)),
    ]


STEPS = '"candidate_steps": [1]'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[]", 'should be an object with a slot, such as {"1": {"candidate_steps": [1, 3]}}'),
        ("{}", "should be an object with a slot"),
        ('{"strategy": "throughput_aware", "1": {%s}}', 'strategy is "throughput_aware"; only "ema" is known here'),
        ('{"ema_alhpa": 0.2, "1": {%s}}', "ema_alhpa is unknown; the nearest is ema_alpha"),
        ('{"candidate_steps": [1], "1": {%s}}', "candidate_steps is unknown; the nearest is "),
        ('{"stratgy": "ema", "1": {%s}}', "stratgy is unknown; the nearest is strategy"),
        ('{"ema_alpha": 0, "1": {%s}}', "ema_alpha is 0, not above 0 and at most 1"),
        ('{"8": 3}', 'slot "8": should be an object with candidate_steps, not 3'),
        ('{"8": {"ema_alpha": 1}}', 'slot "8": should be an object with candidate_steps, not {"ema_alpha": 1}'),
        ('{"8": {%s, "up_histeresis": 0}}', 'slot "8": up_histeresis is unknown; the nearest is up_hysteresis'),
        ('{"8": {%s, "strategy": "ema"}}', 'slot "8": strategy is unknown; the nearest is '),
        (
            '{"8": {"candidate_steps": []}}',
            'slot "8": candidate_steps is [], not a list of whole numbers from 0 to 65535',
        ),
        (
            '{"8": {"candidate_steps": 3}}',
            'slot "8": candidate_steps is 3, not a list of whole numbers from 0 to 65535',
        ),
        ('{"8": {"candidate_steps": [1, -1]}}', 'slot "8": candidate_steps is [1, -1], not a list'),
        ('{"8": {"candidate_steps": [1, 65536]}}', 'slot "8": candidate_steps is [1, 65536], not a list'),
        ('{"1": {%s}, "01": {%s}}', 'slot "01" is there twice, as 1; keep one'),
        ('{"8": {"candidate_steps": [1.5]}}', 'slot "8": candidate_steps is [1.5], not a list'),
        ('{"8": {"candidate_steps": [true]}}', 'slot "8": candidate_steps is [true], not a list'),
        ('{"8": {%s, "update_interval": 0}}', 'slot "8": update_interval is 0, not a whole number from 1 on'),
        ('{"8": {%s, "warmup_batches": -1}}', 'slot "8": warmup_batches is -1, not a whole number from 0 on'),
        ('{"8": {%s, "warmup_batches": 1.0}}', 'slot "8": warmup_batches is 1.0, not a whole number from 0 on'),
        ('{"8": {%s, "ema_alpha": 1.1}}', 'slot "8": ema_alpha is 1.1, not above 0 and at most 1'),
        ('{"8": {%s, "up_hysteresis": "0"}}', 'slot "8": up_hysteresis is "0", not a number'),
        ('{"8": {%s, "up_hysteresis": NaN}}', 'slot "8": up_hysteresis is NaN, not a number'),
        ('{"8": {%s, "down_hysteresis": true}}', 'slot "8": down_hysteresis is true, not a number'),
        ('{"8": {%s, "ceiling_coeff": -1}}', 'slot "8": ceiling_coeff is -1, not at least 0'),
    ],
)
def test_an_error_names_the_file_the_slot_and_the_key(text: str, error: str, tmp_path: Path) -> None:
    file = written(tmp_path, text.replace("%s", STEPS))
    with pytest.raises(ValueError, match=re.escape(f"schedule {file}: {error}")):
        read_table(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"schedule .*none\.json: No such file or directory"):
        read_table(tmp_path / "none.json")


def test_a_file_of_other_bytes(tmp_path: Path) -> None:
    file = tmp_path / "schedule.json"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not JSON"):
        read_table(file)
