"""The message classes of the Corpora service, of which only that service needs to know. Their types: corpora.pyi."""

from draftd.wire.messages import message_classes

_classes = message_classes("draftd/v1/corpora.proto")

LoadHeader = _classes["LoadHeader"]
LoadPart = _classes["LoadPart"]
LoadReply = _classes["LoadReply"]
Names = _classes["Names"]
DeleteRequest = _classes["DeleteRequest"]
DeleteReply = _classes["DeleteReply"]
