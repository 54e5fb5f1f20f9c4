"""How the drafter stands with this client: who it is, what went wrong, and whether it is worth asking."""

from dataclasses import replace

from draftd.breaker import CircuitBreaker
from draftd.client.health import Counters, Health
from draftd.wire import Error, HelloReply, Namespace, Reason, Status, StepReply

Answer = StepReply | Error | Reason  # a Reason (LATE, UNREACHABLE): there was no answer


class Standing:
    """Pure: the clock comes in as `now`, in seconds. `namespace` and `vocabulary_size` are what the client states."""

    def __init__(self, namespace: Namespace, vocabulary_size: int) -> None:
        self._namespace = namespace
        self._vocabulary_size = vocabulary_size
        self.breaker = CircuitBreaker()
        self.counters = Counters()
        self.drafter: HelloReply | None = None  # None: nothing heard, or it does not know us any more
        self.wants_hidden_states = False  # by the drafter's last word
        self.last_error = ""
        self.last_refusal = ""

    def may_ask(self, now: float) -> bool:
        """False while the circuit breaker is open, but for its probes."""
        allowed = self.breaker.allows(now)
        self.counters.off += not allowed
        return allowed

    def judge(self, answer: Answer, now: float) -> None:
        """Count an answer, or that there was none. Not knowing us is no failure: the conversation goes on."""
        if isinstance(answer, StepReply):
            self.breaker.succeeded()
        elif not isinstance(answer, Error) or answer.status != Status.NEED_HELLO:
            self.breaker.failed(now)
        if answer == Reason.LATE:
            self.counters.late += 1
            self.last_error = "no answer within the deadline"
        elif answer == Reason.UNREACHABLE:
            self.counters.unreachable += 1
            self.last_error = "no connection to the drafter"

    def refused(self, problem: str) -> None:
        """A request or a whole step was not taken."""
        self.last_refusal = self.last_error = problem

    def introduced(self, drafter: HelloReply) -> None:
        """The drafter said who it is. Another tokenizer than ours means that it will refuse our requests."""
        self.drafter = drafter
        self.wants_hidden_states = drafter.wants_hidden_states
        ours, size = self._namespace.tokenizer, self._vocabulary_size
        if ours is None or not drafter.tokenizer:
            return
        if ours != drafter.tokenizer or size not in (0, drafter.vocabulary_size):
            self.last_error = (
                f"TOKENIZER_MISMATCH: for {self._namespace.tenant}/{self._namespace.model} the drafter has tokenizer "
                f"{drafter.tokenizer} of {drafter.vocabulary_size} ids, this client states {ours} of {size or '?'} ids"
            )

    def health(self, closed: bool) -> Health:
        if closed:
            state = "closed"
        elif self.breaker.is_open:
            state = "off"
        elif self.breaker.consecutive_failures:
            state = "failing"
        else:
            state = "connecting" if self.drafter is None else "serving"
        return Health(
            state=state,
            last_error=self.last_error,
            last_refusal=self.last_refusal,
            drafter_version=self.drafter.version if self.drafter else "",
            drafter_incarnation=self.drafter.incarnation if self.drafter else None,
            tokenizer=self._namespace.tokenizer,
            vocabulary_size=self._vocabulary_size,
            drafter_tokenizer=(self.drafter.tokenizer or None) if self.drafter else None,
            drafter_vocabulary_size=self.drafter.vocabulary_size if self.drafter else 0,
            consecutive_failures=self.breaker.consecutive_failures,
            counters=replace(self.counters),
        )
