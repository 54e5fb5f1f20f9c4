"""A match as one number, of which the largest wins: so positions may be looked at in any order.

`length << 32 | is_own << 31 | place`. The place is the position behind the match, or its complement where the earliest
is preferred; windows are numbered from the oldest arrival to the newest. No match is 0.
"""

SEPARATOR = -1  # no token: before each window, and where an arrival is empty

LENGTH_SHIFT = 32
OWN_SHIFT = 31
MOST_TOKENS = 2**31 - 1
"""Of a text: its positions fit below OWN_SHIFT. Also what the complement of a place is taken from."""
