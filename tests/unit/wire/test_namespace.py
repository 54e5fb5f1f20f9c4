import pytest

from draftd.wire import Namespace


@pytest.mark.parametrize("field", ["tenant", "model", "tokenizer"])
def test_an_empty_name_is_refused_with_the_field(field: str) -> None:
    with pytest.raises(ValueError, match=f"namespace: {field} is empty"):
        Namespace(**{field: ""})


@pytest.mark.parametrize("field", ["tenant", "model", "tokenizer", "adapter"])
@pytest.mark.parametrize("name", ["two\nlines", "\ud800", "bell\a"])
def test_a_name_that_cannot_be_printed_is_refused_with_the_field(field: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"namespace: {field} .* can't be printed"):
        Namespace(**{field: name})


def test_a_namespace_without_tokenizer_differs_from_one_with() -> None:
    assert Namespace() != Namespace(tokenizer="3f2a")


def test_a_namespace_reads_as_tenant_and_model_then_what_is_stated() -> None:
    assert str(Namespace()) == "default/default"
    stated = Namespace(tenant="acme", model="llama", tokenizer="0123456789abcdef", adapter="sql")
    assert str(stated) == "acme/llama, tokenizer 0123456789ab, adapter sql"
