"""The prompts themselves."""

from tests.engines.conftest import PROMPT_TOKENS, PROMPTS


def test_prompts_are_full_and_differ(prompts: list[list[int]]) -> None:
    assert [len(prompt) for prompt in prompts] == [PROMPT_TOKENS] * PROMPTS
    assert len({tuple(prompt) for prompt in prompts}) == PROMPTS
