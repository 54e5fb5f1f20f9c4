"""What the demo's model is asked: work on text that it is given, as much of what is asked of models is."""

_CODE = """\
class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        if len(self.items) == 0:
            raise IndexError("pop from an empty stack")
        return self.items.pop()

    def peek(self):
        if len(self.items) == 0:
            raise IndexError("peek at an empty stack")
        return self.items[-1]
"""

PROMPTS = [
    f"Copy this Python class and add a docstring to each method:\n```python\n{_CODE}```",
    f"Copy this Python class and rename it to Pile:\n```python\n{_CODE}```",
    "Write a Python function that adds up the even numbers of a list, then explain each line of it.",
]
