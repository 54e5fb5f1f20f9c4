"""The message classes of the contract, made from the compiled proto files (contract.binpb).

Their types are in messages.pyi. Loading the contract at import, instead of committing protoc's Python
modules, keeps draftd independent of the installed protobuf version.
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet


def _load_contract() -> dict[str, Any]:
    pool = descriptor_pool.Default()  # the default pool: gRPC reflection looks there
    contract = FileDescriptorSet.FromString(Path(__file__).with_name("contract.binpb").read_bytes())
    for file in contract.file:
        pool.AddSerializedFile(file.SerializeToString())
    descriptors = pool.FindFileByName("draftd/v1/draft.proto").message_types_by_name
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in descriptors.items()}


_classes = _load_contract()

Frame = _classes["Frame"]
Hello = _classes["Hello"]
HelloReply = _classes["HelloReply"]
DraftSync = _classes["DraftSync"]
VerifyCommit = _classes["VerifyCommit"]
DraftClose = _classes["DraftClose"]
StepBatch = _classes["StepBatch"]
DraftTail = _classes["DraftTail"]
StepReply = _classes["StepReply"]
RowError = _classes["RowError"]
Error = _classes["Error"]
