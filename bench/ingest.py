"""How fast documents become visible: from the first byte sent to the answer that drafts use them, at a real server.

    python -m bench.ingest [--corpus FILE.npz] [--tokens 10000000] [--text-bytes 20000000] [--repetitions 3]

Token ids as packed columns, over HTTP and over gRPC, and as lines of JSON; text as lines of JSON, tokenized by the
server. Ids are those of the corpus, and of copies with permuted ids if it has too few; text is what Python's own
library is written in. Prints the best of the repetitions, and ends with status 1 if a target is missed; only ten
million tokens have one.
"""

import argparse
import http.client
import io
import json
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import mistral_common
import msgspec
import numpy as np
from rich.table import Table

from bench.text import TokenArray, corpus_documents, first_tokens, permuted_copies
from draftd.demo.sample import SAMPLE_CORPUS
from draftd.observe import terminal
from draftd.wire.corpora import LoadHeader, LoadPart, LoadReply

FULL_SIZE = 10_000_000
TARGET = 3_000_000  # tokens/s of packed columns
TOKENIZER = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
PART_TOKENS = 1 << 18  # a message of a megabyte
SECONDS = 600.0  # that one load may take


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Of a running server."""

    http: str  # HOST:PORT
    grpc: str


@dataclass(frozen=True, slots=True)
class Measured:
    """One way to send documents."""

    name: str
    packed: bool
    tokens: int
    megabytes: float
    seconds: float

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds

    def missed_targets(self) -> list[str]:
        if self.packed and self.tokens >= FULL_SIZE and self.rate < TARGET:
            return [f"{self.name}: {self.rate:,.0f} tokens/s, at least {TARGET:,} wanted"]
        return []


@contextmanager
def serving() -> Iterator[Endpoints]:
    """A server with a tokenizer for the tenant `text`."""
    with tempfile.TemporaryDirectory(prefix="draftd-") as folder:
        config = Path(folder) / "draftd.toml"
        config.write_text(f'[[tokenizers]]\ntenant = "text"\npath = {json.dumps(str(TOKENIZER))}\n')
        options = ["--config", str(config), "--data-dir", folder, "--http", "127.0.0.1:0", "--grpc", "unix:grpc.sock"]
        command = [sys.executable, "-m", "draftd", "serve", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            words = server.stdout.readline().partition("ready: ")[2].split()
            endpoints = dict(zip(words[::2], words[1::2], strict=True))
            try:
                yield Endpoints(endpoints["http"].removeprefix("http://"), endpoints["grpc"])
            finally:
                server.terminate()


def post(address: str, content: bytes, content_type: str, tenant: str = "ids", mode: str = "create") -> int:
    """Tokens that are visible when it returns. `address` is that of HTTP."""
    connection = http.client.HTTPConnection(address, timeout=SECONDS)
    query = urllib.parse.urlencode({"tenant": tenant, "mode": mode})
    connection.request("POST", f"/corpora/bench/documents?{query}", content, {"Content-Type": content_type})
    reply = json.load(connection.getresponse())
    connection.close()
    if not reply["success"]:
        raise SystemExit(f"bench.ingest: {reply['message']}")
    return int(reply["job"]["tokens"])


def stream(endpoints: Endpoints, token_ids: TokenArray, document_ends: np.ndarray) -> int:
    """Tokens that are visible when it returns."""

    def parts() -> Iterator[LoadPart]:
        header = LoadHeader(tenant="ids", corpus_id="bench", mode="create")
        yield LoadPart(header=header, document_ends=document_ends.astype("<i8").tobytes())
        for start in range(0, len(token_ids), PART_TOKENS):
            yield LoadPart(token_ids=token_ids[start : start + PART_TOKENS].tobytes())
        yield LoadPart(last=True)

    with grpc.insecure_channel(endpoints.grpc) as channel:
        load = channel.stream_unary("/draftd.v1.Corpora/Load", LoadPart.SerializeToString, LoadReply.FromString)
        return int(load(parts(), timeout=SECONDS).tokens)


def remove(address: str, tenant: str) -> None:
    connection = http.client.HTTPConnection(address, timeout=SECONDS)
    body = json.dumps({"corpus_id": "bench", "tenant": tenant})
    connection.request("POST", "/remove_external_corpus", body, {"Content-Type": "application/json"})
    connection.getresponse().read()
    connection.close()


def library_lines(limit: int) -> bytes:
    """About so many bytes of the sources of Python's library, a file a line."""
    lines, size = [], 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if size >= limit:
            break
        lines.append(msgspec.json.encode({"text": path.read_text(errors="replace"), "id": path.name}))
        size += len(lines[-1])
    return b"\n".join(lines)


def measure(
    name: str, endpoints: Endpoints, send: Callable[[], int], size: int, *, tenant: str, packed: bool, repetitions: int
) -> Measured:
    """The best of the repetitions."""
    best = float("inf")
    tokens = 0
    for _ in range(repetitions):
        start = time.perf_counter()
        tokens = send()
        best = min(best, time.perf_counter() - start)
        remove(endpoints.http, tenant)
    return Measured(name, packed, tokens, size / 1e6, best)


def measure_all(documents: list[TokenArray], text: bytes, repetitions: int) -> list[Measured]:
    token_ids = np.concatenate(documents).astype("<i4")
    document_ends = np.cumsum([len(document) for document in documents])
    array, archive = io.BytesIO(), io.BytesIO()
    np.save(array, token_ids)
    np.savez(archive, token_ids=token_ids, doc_offsets=np.concatenate([[0], document_ends]))
    lines = b"\n".join(msgspec.json.encode({"token_ids": document.tolist()}) for document in documents)
    with serving() as endpoints:

        def over_http(content: bytes, content_type: str, tenant: str = "ids") -> Callable[[], int]:
            return lambda: post(endpoints.http, content, content_type, tenant)

        ways = [
            (".npy over HTTP", over_http(array.getvalue(), "application/x-npy"), array.tell(), "ids", True),
            (".npz over HTTP", over_http(archive.getvalue(), "application/x-npz"), archive.tell(), "ids", True),
            ("columns over gRPC", lambda: stream(endpoints, token_ids, document_ends), token_ids.nbytes, "ids", True),
            ("NDJSON of ids", over_http(lines, "application/x-ndjson"), len(lines), "ids", False),
            ("NDJSON of text", over_http(text, "application/x-ndjson", "text"), len(text), "text", False),
        ]
        return [
            measure(name, endpoints, send, size, tenant=tenant, packed=packed, repetitions=repetitions)
            for name, send, size, tenant, packed in ways
        ]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=SAMPLE_CORPUS, help="token ids; default: the bundled sample")
    parser.add_argument("--tokens", type=int, default=FULL_SIZE, help="token ids sent")
    parser.add_argument("--text-bytes", type=int, default=20_000_000, help="text sent, about")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args(arguments)
    documents = first_tokens(permuted_copies(corpus_documents(options.corpus), options.tokens), options.tokens)
    measured = measure_all(documents, library_lines(options.text_bytes), options.repetitions)
    table = Table("sent as", "MB", "tokens", "seconds to visible", "tokens/s", title="ingest, end to end")
    for row in measured:
        table.add_row(row.name, f"{row.megabytes:.1f}", f"{row.tokens:,}", f"{row.seconds:.2f}", f"{row.rate:,.0f}")
    console = terminal.console()
    console.print(table)
    missed = [complaint for row in measured for complaint in row.missed_targets()]
    for complaint in missed:
        console.print(f"missed: {complaint}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
