"""The namespace: what a request may share text with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Namespace:
    """Requests and corpora of one namespace may read each other's text; nothing crosses to another.

    `tokenizer` is the fingerprint of the token ids' vocabulary. None means "not stated", which is a
    namespace of its own, not a wildcard.
    """

    tenant: str = "default"
    model: str = "default"
    tokenizer: str | None = None
    adapter: str = ""

    def __post_init__(self) -> None:
        for field in ("tenant", "model"):
            if not getattr(self, field):
                raise ValueError(f"namespace: {field} is empty; name one, or leave it out for 'default'")
        for field in ("tenant", "model", "tokenizer", "adapter"):
            # Names are written to logs and messages, a line each.
            if not (getattr(self, field) or "").isprintable():
                raise ValueError(f"namespace: {field} {getattr(self, field)!a} has characters that can't be printed")
        if self.tokenizer == "":
            raise ValueError("namespace: tokenizer is empty; give its fingerprint, or None for token ids as they are")

    def covers(self, namespace: "Namespace") -> bool:
        """As the owner of namespaces: whether that is one of its own. With no tokenizer stated, of any tokenizer."""
        return self.tokenizer in (None, namespace.tokenizer) and (
            (self.tenant, self.model, self.adapter) == (namespace.tenant, namespace.model, namespace.adapter)
        )

    def __str__(self) -> str:
        parts = [f"{self.tenant}/{self.model}"]
        if self.tokenizer is not None:
            parts.append(f"tokenizer {self.tokenizer[:12]}")
        if self.adapter:
            parts.append(f"adapter {self.adapter}")
        return ", ".join(parts)
