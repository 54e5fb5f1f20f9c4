"""One request's text in the KV cache of a causal model, and the forward pass that verifies a draft."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from draftd.client import RequestStates
from draftd.client.trees import tree_batch
from draftd.verify.rules import Proposal, Verdict


class CachedText:
    """The committed text, of which the cache holds all but the tokens that no forward pass has seen yet."""

    def __init__(self, model: Any, prompt: Sequence[int]) -> None:
        """`model`: a transformers causal language model. Raises ValueError for an empty prompt."""
        if not len(prompt):
            raise ValueError("the prompt is empty; give at least one token to go on from")
        self.cache = DynamicCache(config=model.config)
        self._model = model
        self._unseen = list(prompt)
        self._seen_states: Any = None  # [tokens, width], of the last pass; None: nobody reads them

    def forward(self, proposal: Proposal, *, with_states: bool = False) -> NDArray[np.float32]:
        """One pass over what the cache lacks and all nodes: float32[n + 1, vocabulary], the logits after the text and
        after each node. `commit` has to follow, and gives the hidden states of the pass with `with_states`. Raises
        ValueError for ids outside the vocabulary."""
        cached, unseen = self.cache.get_seq_length(), self._unseen
        tree = tree_batch([proposal], unseen[-1:])
        nodes = tree.tokens.shape[1]  # with the root, the last token of the text
        tokens = np.concatenate((np.array(unseen[:-1], np.int64), tree.tokens[0]))
        before_root = np.arange(cached, cached + len(unseen) - 1)
        positions = np.concatenate((before_root, tree.positions([cached + len(unseen)])[0]))
        sees = np.tri(len(tokens), cached + len(tokens), cached, dtype=np.bool_)
        sees[-nodes:, -nodes:] = tree.mask()[0]
        self._check(tokens)
        with torch.inference_mode():
            output = self._model(
                input_ids=self._on_device(tokens[np.newaxis]),
                position_ids=self._on_device(positions[np.newaxis]),
                attention_mask=self._mask(sees),
                past_key_values=self.cache,
                logits_to_keep=nodes,
                output_hidden_states=with_states,
            )
        self._seen_states = output.hidden_states[-1][0] if with_states else None
        logits: NDArray[np.float32] = output.logits[0].float().cpu().numpy()
        return logits

    def commit(self, proposal: Proposal, verdict: Verdict) -> RequestStates | None:
        """After `forward`: the text goes on with what the verdict emits; of the nodes the cache keeps its path. The
        last layer's hidden states of what was new in the pass, as it reaches the output head."""
        states = self._states_of(proposal, verdict)
        self._unseen = [verdict.bonus]
        if len(verdict.path) == len(proposal.tokens):
            return states
        text = self.cache.get_seq_length() - len(proposal.tokens)
        kept = self._on_device(np.concatenate((np.arange(text), text + np.array(verdict.path, np.int64))))
        with torch.inference_mode():
            for layer in self.cache.layers:
                layer.keys, layer.values = layer.keys[:, :, kept], layer.values[:, :, kept]
        return states

    def _states_of(self, proposal: Proposal, verdict: Verdict) -> RequestStates | None:
        if self._seen_states is None:
            return None
        new = len(self._unseen)
        kept = [*range(new), *(new + node for node in verdict.path)]
        start = self.cache.get_seq_length() - len(proposal.tokens) - new
        return RequestStates(start, self._seen_states[kept].float().cpu().numpy())

    def _check(self, tokens: NDArray[np.int64]) -> None:
        size = self._model.get_input_embeddings().num_embeddings
        outside = tokens[(tokens < 0) | (tokens >= size)]
        if outside.size:
            raise ValueError(f"token id {outside[0]} is outside the model's vocabulary of {size}")

    def _on_device(self, array: NDArray[Any]) -> Any:
        return torch.from_numpy(array).to(self._model.device)

    def _mask(self, sees: NDArray[np.bool_]) -> Any:
        """[1, 1, queries, keys], to be added to the scores: 0 where a token is seen, and as good as minus infinity."""
        mask = torch.zeros(sees.shape, dtype=self._model.dtype, device=self._model.device)
        mask.masked_fill_(self._on_device(~sees), torch.finfo(self._model.dtype).min)
        return mask[None, None]
