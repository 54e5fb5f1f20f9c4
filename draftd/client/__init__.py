"""The client of draftd: what a verifier imports.

client = Client("ipc:///run/draftd/draftd.sock", Namespace(tenant="acme", model="llama-3.1-70b"))
request = client.open("req-1", prompt_token_ids, stop_ids=[2])
draft = request.draft(budget=16)
draft = request.step([11, 12, 13], budget=16)
request.close()

Around it: draftd.client.trees for masks, links, padding, chains and grammars, draftd.client.prefixes for engines that
state their whole text.
"""

from draftd.client.async_client import AsyncClient
from draftd.client.client import Client
from draftd.client.draft import Draft
from draftd.client.health import Counters, Health
from draftd.client.hidden_states import RequestStates
from draftd.client.request import AsyncRequest, Request
from draftd.pacing.cost_table import CostTable
from draftd.wire import Namespace, Reason, Source, Status, TailKind

__all__ = [
    "AsyncClient",
    "AsyncRequest",
    "Client",
    "CostTable",
    "Counters",
    "Draft",
    "Health",
    "Namespace",
    "Reason",
    "Request",
    "RequestStates",
    "Source",
    "Status",
    "TailKind",
]
