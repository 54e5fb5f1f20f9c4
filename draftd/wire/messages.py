"""The message classes of the contract, made from the compiled proto files (contract.binpb).

Their types are in messages.pyi. Loading the contract at import, instead of committing protoc's Python
modules, keeps draftd independent of the installed protobuf version.
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet


def _load_contract() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.Default()  # the default pool: gRPC reflection looks there
    contract = FileDescriptorSet.FromString(Path(__file__).with_name("contract.binpb").read_bytes())
    for file in contract.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def message_classes(proto_file: str) -> dict[str, Any]:
    """By name, those of one file of the contract."""
    descriptors = _pool.FindFileByName(proto_file).message_types_by_name
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in descriptors.items()}


_pool = _load_contract()
_classes = message_classes("draftd/v1/draft.proto")

Frame = _classes["Frame"]
Hello = _classes["Hello"]
CostTable = _classes["CostTable"]
HelloReply = _classes["HelloReply"]
DraftSync = _classes["DraftSync"]
VerifyCommit = _classes["VerifyCommit"]
HiddenStates = _classes["HiddenStates"]
DraftClose = _classes["DraftClose"]
StepBatch = _classes["StepBatch"]
DraftTail = _classes["DraftTail"]
DraftTape = _classes["DraftTape"]
StepReply = _classes["StepReply"]
RowError = _classes["RowError"]
Error = _classes["Error"]
