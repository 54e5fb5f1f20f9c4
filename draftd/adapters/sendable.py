"""Text that users choose, as it can be sent."""


def sendable(text: str) -> str:
    """With halves of surrogate pairs spelt out, which JSON has and UTF-8 has not, and backslashes doubled, so that two
    texts stay two."""
    return text.replace("\\", r"\\").encode(errors="backslashreplace").decode()
