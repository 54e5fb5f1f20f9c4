"""What engines and their users call a stop id, as a client takes it."""

from draftd.adapters.stop_ids import token_ids_among
from draftd.client import Namespace
from draftd.client.opening import opening_message


def test_what_is_no_token_id_is_left_out_and_what_is_left_can_be_opened_with() -> None:
    kept = token_ids_among([-1, 0, None, 2, 2**31 - 2, 2**31 - 1, 2**31])
    assert kept == [0, 2, 2**31 - 2]
    opening_message("r", Namespace(), 0, {"stop_ids": kept})
