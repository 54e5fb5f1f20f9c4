"""Frames that wait for an answer, by whom they are from: in order for each peer, and peers in turn."""

from collections import deque
from dataclasses import dataclass, field

PEER_SECONDS = 1.0  # a peer that sent nothing for so long is not there, as far as others are concerned


@dataclass(slots=True)
class _Peer:
    frames: deque[bytes] = field(default_factory=deque)
    in_hand: bool = False  # one of its frames is being answered: the next has to wait for it
    last_heard: float = 0.0  # seconds


class WaitingFrames:
    """Pure: no socket, no thread, no clock."""

    def __init__(self) -> None:
        self._peers: dict[bytes, _Peer] = {}
        self._turns: deque[bytes] = deque()  # peers of which a frame can be taken
        self._count = 0
        self.bytes = 0  # of all that wait

    def __len__(self) -> int:
        return self._count

    def add(self, peer: bytes, frame: bytes, now: float) -> None:
        known = self._peers.get(peer)
        if known is None:
            known = self._peers[peer] = _Peer()
        known.last_heard = now
        known.frames.append(frame)
        self._count += 1
        self.bytes += len(frame)
        if len(known.frames) == 1 and not known.in_hand:
            self._turns.append(peer)

    def can_take(self) -> bool:
        return bool(self._turns)

    def take(self) -> tuple[bytes, bytes, int]:
        """The peer whose turn it is, its next frame, and how many more of its frames wait.

        No other frame of that peer can be taken before `answered`. Raises IndexError if none can be taken."""
        peer = self._turns.popleft()
        known = self._peers[peer]
        known.in_hand = True
        frame = known.frames.popleft()
        self._count -= 1
        self.bytes -= len(frame)
        return peer, frame, len(known.frames)

    def answered(self, peer: bytes) -> None:
        known = self._peers[peer]
        known.in_hand = False
        if known.frames:
            self._turns.append(peer)

    def from_one_peer(self) -> bool:
        """Whether nobody but one peer was heard lately."""
        return len(self._peers) <= 1

    def forget_silent(self, now: float) -> None:
        """Peers that were not heard for PEER_SECONDS, of which nothing waits."""
        silent = [
            peer
            for peer, known in self._peers.items()
            if not known.frames and not known.in_hand and known.last_heard < now - PEER_SECONDS
        ]
        for peer in silent:
            del self._peers[peer]
