"""The drafter once more, slow and readable: token by token and head by head, in NumPy and float64."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from draftd.blocks.drafter import BlockDrafter

Floats = NDArray[np.float64]


@dataclass
class TwinBlock:
    tokens: list[int]  # the target's ids
    probabilities: list[Floats]
    survival: list[float]


class Twin:
    """Of one row, without padding: a text that is shorter than the context is the whole sequence."""

    def __init__(self, drafter: BlockDrafter) -> None:
        self.config = drafter.config
        self.weights = {name: weight.double().numpy() for name, weight in drafter.state_dict().items()}
        self.words: list[int] = drafter.vocabulary.tolist()

    def draft(self, text: Sequence[int], temperature: float, chance: Sequence[float]) -> TwinBlock:
        own = [self._own_id(token) for token in text[-self.config.context_size :]]
        hidden = self._transformer(own + [self.config.mask_token_id] * self.config.block_size)[len(own) :]
        block, previous, state, alive = TwinBlock([], [], []), own[-1], np.zeros(self.config.markov_rank), 1.0
        for at, number in zip(hidden, chance, strict=True):
            bias, state = self._markov(previous, at, state)
            words = self.weights["transformer.embed_tokens.weight"][: self.config.draft_vocab_size]
            logits = np.array([at @ word for word in words]) + bias
            if temperature == 0.0:
                previous = int(logits.argmax())
                block.probabilities.append(np.eye(len(logits))[previous])
            else:
                probabilities = softmax(logits / temperature)
                previous = next(word for word in range(len(logits)) if probabilities[: word + 1].sum() > number)
                block.probabilities.append(probabilities)
            block.tokens.append(self.words[previous])
            alive *= self._confidence(at, np.log(softmax(logits))[previous])
            block.survival.append(alive)
        return block

    def _own_id(self, token: int) -> int:
        return self.words.index(token) if token in self.words else self.config.unknown_token_id

    def _markov(self, previous: int, hidden: Floats, state: Floats) -> tuple[Floats, Floats]:
        embedded = self.weights["markov_head.previous.weight"][previous]
        table = self.weights["markov_head.bias.weight"]
        match self.config.markov_head_type:
            case "vanilla":
                return table @ embedded, state
            case "gated":
                gate = sigmoid(self._linear("markov_head.gate", np.concatenate([hidden, embedded])))
                return table @ (gate * embedded), state
            case "recurrent":
                state = self._gru(embedded, state)
                return table @ state, state

    def _gru(self, given: Floats, state: Floats) -> Floats:
        name = "markov_head.cell."
        new = np.split(self.weights[name + "weight_ih"] @ given + self.weights[name + "bias_ih"], 3)
        old = np.split(self.weights[name + "weight_hh"] @ state + self.weights[name + "bias_hh"], 3)
        reset, update = sigmoid(new[0] + old[0]), sigmoid(new[1] + old[1])
        return (1 - update) * np.tanh(new[2] + reset * old[2]) + update * state

    def _confidence(self, hidden: Floats, log_probability: float) -> float:
        return float(sigmoid(self._linear("confidence_head", np.append(hidden, log_probability)))[0])

    def _transformer(self, own: Sequence[int]) -> list[Floats]:
        stream = [self.weights["transformer.embed_tokens.weight"][token] for token in own]
        for layer in range(self.config.num_hidden_layers):
            name = f"transformer.layers.{layer}."
            normed = [self._norm(name + "input_layernorm", it) for it in stream]
            stream = [it + self._attention(name + "self_attn.", normed, i) for i, it in enumerate(stream)]
            stream = [it + self._mlp(name + "mlp.", self._norm(name + "post_attention_layernorm", it)) for it in stream]
        return [self._norm("transformer.norm", it) for it in stream]

    def _attention(self, name: str, normed: Sequence[Floats], place: int) -> Floats:
        """Of one token, to itself and everything before it."""
        heads, groups = self.config.num_attention_heads, self.config.num_key_value_heads
        query = np.split(self.weights[name + "q_proj.weight"] @ normed[place], heads)
        mixed = []
        for head in range(heads):
            group, scores, values = head * groups // heads, [], []
            for other in range(place + 1):
                key = np.split(self.weights[name + "k_proj.weight"] @ normed[other], groups)[group]
                values.append(np.split(self.weights[name + "v_proj.weight"] @ normed[other], groups)[group])
                scores.append(self._turned(query[head], place) @ self._turned(key, other) / np.sqrt(len(key)))
            mixed.append(sum(share * value for share, value in zip(softmax(np.array(scores)), values, strict=True)))
        return self.weights[name + "o_proj.weight"] @ np.concatenate(mixed)

    def _turned(self, vector: Floats, place: int) -> Floats:
        """Rotary position: pairs of entries, half a vector apart, turned by angles that grow with the place."""
        half = len(vector) // 2
        angle = place * self.config.rope_theta ** (-np.arange(half) / half)
        first, second = vector[:half], vector[half:]
        return np.concatenate(
            [first * np.cos(angle) - second * np.sin(angle), second * np.cos(angle) + first * np.sin(angle)]
        )

    def _mlp(self, name: str, given: Floats) -> Floats:
        gate = self.weights[name + "gate_proj.weight"] @ given
        up = self.weights[name + "up_proj.weight"] @ given
        return self.weights[name + "down_proj.weight"] @ (gate * sigmoid(gate) * up)

    def _norm(self, name: str, given: Floats) -> Floats:
        return self.weights[name + ".weight"] * given / np.sqrt((given**2).mean() + self.config.rms_norm_eps)

    def _linear(self, name: str, given: Floats) -> Floats:
        return self.weights[name + ".weight"] @ given + self.weights[name + ".bias"]


def softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def sigmoid(logits: Floats) -> Floats:
    return 1 / (1 + np.exp(-logits))
