"""The ids that every vocabulary begins with."""

PAD, UNKNOWN, START, END = range(4)
SPECIAL_TOKENS = 4
"""How many they are."""
