"""How a block drafter learns from a target's outputs: first the tokens, then how far it can be trusted.

The confidence head is fitted last, and on outputs that the rest did not learn from: on its own lessons a drafter is
right more often than on what is new.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from draftd.blocks.config import BlockConfig, MarkovHeadType
from draftd.blocks.drafter import BlockDrafter
from draftd.replay.traces import RecordedRequest

ROWS, ANCHORS = 8, 16  # of a training step
LEARNING_RATE, WARM_UP = 3e-3, 10  # steps of warm-up
LATER_COUNTS = 0.8  # a position's part in the loss beside the one before it: it is drafted for nothing if that is wrong
CONFIDENCE_STEPS, CONFIDENCE_RATE = 200, 0.02
CONTEXT, MARKOV_RANK = 64, 64
WIDTH, LAYERS, HEADS = 192, 2, 6
EMBEDDING_SIZE = 0.05  # standard deviation of an entry
IGNORED = -100  # what cross_entropy skips


def untrained_drafter(
    target_embeddings: Tensor, lessons: Sequence[RecordedRequest], markov_head: MarkovHeadType, *, confidence: bool
) -> BlockDrafter:
    """It drafts the tokens that the lessons hold. Its embeddings begin as the target's, float32[vocabulary, width], of
    which it keeps the directions that differ most; all else begins by chance, as torch's seed has it."""
    vocabulary = np.unique(np.concatenate([part for it in lessons for part in (it.prompt, it.output)]))
    config = BlockConfig(
        target_vocab_size=len(target_embeddings),
        draft_vocab_size=len(vocabulary),
        unknown_token_id=len(vocabulary),
        mask_token_id=len(vocabulary) + 1,
        context_size=CONTEXT,
        markov_head_type=markov_head,
        markov_rank=MARKOV_RANK,
        has_confidence_head=confidence,
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        rope_theta=10_000.0,
        rms_norm_eps=1e-5,
    )
    drafter = BlockDrafter(config)
    drafter.vocabulary.copy_(torch.from_numpy(vocabulary))
    centred = target_embeddings - target_embeddings.mean(0)
    directions = torch.linalg.eigh(centred.T @ centred).eigenvectors[:, -WIDTH:]
    own = centred[drafter.vocabulary] @ directions
    with torch.no_grad():
        drafter.transformer.embed_tokens.weight[: len(own)] = EMBEDDING_SIZE * own / own.std()
    return drafter


@dataclass(frozen=True, slots=True)
class Lesson:
    """A batch to learn from."""

    context: Tensor  # own ids, int64[rows, CONTEXT]
    begin: Tensor  # int64[rows]
    anchors: Tensor  # int64[rows, ANCHORS]
    before: Tensor  # own ids, int64[rows, ANCHORS, block size]: the token before each position
    targets: Tensor  # own ids, int64[rows, ANCHORS, block size]; IGNORED behind the end, and where none is drafted


def lessons_from(
    drafter: BlockDrafter, outputs: Sequence[RecordedRequest], random: np.random.Generator
) -> Iterator[Lesson]:
    """Without end: parts of outputs, and in each some anchors to draft from, by chance."""
    texts = [torch.from_numpy(np.concatenate([it.prompt, it.output]).astype(np.int64)) for it in outputs]
    firsts = [len(it.prompt) - 1 for it in outputs]  # the first anchor: what comes behind it is the model's own
    size = drafter.config.block_size
    while True:
        rows = random.integers(len(texts), size=ROWS)
        contexts, begins, anchors, blocks = [], [], [], []
        for row in rows.tolist():
            text, last = texts[row], len(texts[row]) - 2
            end = int(random.integers(firsts[row], last + 1))  # the part's last token
            part = text[max(0, end + 1 - CONTEXT) : end + 1]
            places = random.integers(max(firsts[row], end + 1 - len(part)), end + 1, size=ANCHORS)
            padded = torch.nn.functional.pad(text, (0, size), value=IGNORED)
            contexts.append(torch.nn.functional.pad(part, (CONTEXT - len(part), 0)))
            begins.append(CONTEXT - len(part))
            anchors.append(places - end + CONTEXT - 1)
            blocks.append(torch.stack([padded[place : place + size + 1] for place in places.tolist()]))
        block = torch.stack(blocks)
        own = drafter.own_ids(block)
        drafted = own < drafter.config.draft_vocab_size
        yield Lesson(
            context=drafter.own_ids(torch.stack(contexts)),
            begin=torch.tensor(begins),
            anchors=torch.from_numpy(np.stack(anchors)),
            before=own[..., :-1],
            targets=torch.where(drafted, own, IGNORED)[..., 1:],
        )


def guided_logits(drafter: BlockDrafter, hidden: Tensor, before: Tensor) -> Tensor:
    """float32[blocks, block size, draft vocabulary]: of a walk on which every token so far was the right one."""
    head = drafter.markov_head
    state, biases = head.first_state(hidden[:, 0]), []
    for place in range(hidden.shape[1]):
        bias, state = head.step(before[:, place], hidden[:, place], state)
        biases.append(bias)
    return drafter.logits(hidden) + torch.stack(biases, 1)


def learn_tokens(drafter: BlockDrafter, lessons: Iterator[Lesson], steps: int) -> Iterator[float]:
    """The loss of each step, as it is taken."""
    optimizer = torch.optim.AdamW(drafter.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARM_UP, max(0.02, 1 - step / steps))
    )
    weight = LATER_COUNTS ** torch.arange(drafter.config.block_size)
    for _ in range(steps):
        lesson = next(lessons)
        hidden = drafter(lesson.context, lesson.begin, lesson.anchors).flatten(0, 1)
        logits = guided_logits(drafter, hidden, lesson.before.flatten(0, 1))
        targets = lesson.targets.flatten(0, 1)
        losses = nn.functional.cross_entropy(logits.transpose(1, 2), targets, ignore_index=IGNORED, reduction="none")
        loss = (losses * weight).sum() / ((targets != IGNORED) * weight).sum().clamp(min=1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(drafter.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield loss.item()


def learn_confidence(drafter: BlockDrafter, lessons: Iterator[Lesson], batches: int) -> None:
    """Fits the confidence head to whether greedy drafts are right, and leaves everything else as it is."""
    assert drafter.confidence_head is not None
    hidden, log_probability, right, counts = _greedy_outcomes(drafter, lessons, batches)
    optimizer = torch.optim.AdamW(drafter.confidence_head.parameters(), lr=CONFIDENCE_RATE, weight_decay=0.1)
    for _ in range(CONFIDENCE_STEPS):
        logits = drafter.confidence_logits(hidden, log_probability)
        loss = nn.functional.binary_cross_entropy_with_logits(logits[counts], right[counts].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _greedy_outcomes(
    drafter: BlockDrafter, lessons: Iterator[Lesson], batches: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of many blocks: hidden states, the chosen tokens' log probabilities, whether they are right, and whether that
    counts. It does where all before are right, and so far a greedy walk is the guided one."""
    parts = []
    with torch.no_grad():
        for _ in range(batches):
            lesson = next(lessons)
            hidden = drafter(lesson.context, lesson.begin, lesson.anchors).flatten(0, 1)
            best = guided_logits(drafter, hidden, lesson.before.flatten(0, 1)).log_softmax(-1).max(-1)
            right = best.indices == lesson.targets.flatten(0, 1)
            counts = torch.cat([torch.ones_like(right[:, :1]), right.cumprod(1)[:, :-1].bool()], 1)
            parts.append((hidden, best.values, right, counts))
    hidden, log_probability, right, counts = (torch.cat(part) for part in zip(*parts, strict=True))
    return hidden, log_probability, right, counts
