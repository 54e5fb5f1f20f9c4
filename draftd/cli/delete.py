"""corpus delete: documents of a corpus, or of what requests left, gone for good."""

import sys
import time
from typing import Annotated

import typer

from draftd.cli.address import Adapter, Model, Tenant, Tokenizer, Url, namespace, post, server
from draftd.cli.failure import Failure
from draftd.cli.options import ConfigFile


def delete(
    corpus_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Name of the corpus; none: with --history.")
    ] = None,
    document: Annotated[list[str] | None, typer.Option(metavar="ID", help="Document of it; may be repeated.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Delete from what requests left.")] = False,
    group: Annotated[str | None, typer.Option(help="Group of the history; default: all of them.")] = None,
    request: Annotated[list[str] | None, typer.Option(metavar="ID", help="Request of it; may be repeated.")] = None,
    older_than: Annotated[int | None, typer.Option(metavar="SECONDS", min=0, help="Only what is older.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete a whole history without asking.")] = False,
    http: Url = None,
    tenant: Tenant = "default",
    model: Model = "default",
    adapter: Adapter = "",
    tokenizer: Tokenizer = None,
    config: ConfigFile = None,
) -> None:
    """Delete documents: no draft has their text, and the disk doesn't hold it, when this returns."""
    of_corpus, of_history = document is not None, group is not None or request is not None
    if (corpus_id is None) != history:
        raise Failure("say where to delete: give the ID of a corpus, or --history, and not both")
    if history and of_corpus:
        raise Failure("--document goes with a corpus; what requests left is picked by --request, --group, --older-than")
    if not history and of_history:
        raise Failure("--request and --group go with --history; of a corpus, --document and --older-than pick")
    if not (of_corpus or of_history or older_than is not None):
        if not history:
            raise Failure(
                "say what to delete: --document or --older-than; `draftd corpus remove` removes a whole corpus"
            )
        if not yes:
            _ask(f"everything that requests of tenant {tenant!r} and model {model!r} left")
    given = {
        "corpus_id": corpus_id,
        "document_ids": document,
        "group": group,
        "request_ids": request,
        "older_than": None if older_than is None else max(0, int(time.time()) - older_than),
    }
    fields = {name: value for name, value in given.items() if value is not None} | {"history": history}
    post(server(http, config), "delete_documents", fields | namespace(tenant, model, adapter, tokenizer))


def _ask(what: str) -> None:
    """Returns if a person at a terminal wants it. Raises Failure."""
    if not sys.stdin.isatty():
        raise Failure(f"this deletes {what}: give --yes if it should, or pick with --request, --group, --older-than")
    if not typer.confirm(f"Delete {what}?", err=True):
        raise Failure("nothing is deleted")
