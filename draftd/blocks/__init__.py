"""Parallel block drafting: a block of mask tokens behind the text, in one forward pass. Needs the extra models."""
