"""Types of option values that have a form of their own."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ByteSize


def mebibytes(count: int) -> ByteSize:
    """`count` MiB in bytes."""
    return ByteSize(count << 20)


def _token_count(value: object) -> object:
    """Reads "10M" and "500k"; anything else is left to the check of the type."""
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmM]?)", value.strip())):
        return int(float(match[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2].lower()])
    return value


def _is_host_and_port(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and "/" not in host and port.isdecimal() and int(port) < 65536


def _zmq_endpoint(text: str) -> str:
    scheme, _, rest = text.partition("://")
    if text and not (scheme == "ipc" and rest) and not (scheme == "tcp" and _is_host_and_port(rest)):
        raise ValueError("should be ipc://PATH or tcp://HOST:PORT, or empty for none")
    return text


def _grpc_endpoint(text: str) -> str:
    if text and not (text.startswith("unix:") and len(text) > len("unix:")) and not _is_host_and_port(text):
        raise ValueError("should be HOST:PORT or unix:PATH, or empty for none")
    return text


def _http_endpoint(text: str) -> str:
    if text and not _is_host_and_port(text):
        raise ValueError("should be HOST:PORT, or empty for none")
    return text


TokenCount = Annotated[int, BeforeValidator(_token_count)]
ZmqEndpoint = Annotated[str, AfterValidator(_zmq_endpoint)]
GrpcEndpoint = Annotated[str, AfterValidator(_grpc_endpoint)]
HttpEndpoint = Annotated[str, AfterValidator(_http_endpoint)]
