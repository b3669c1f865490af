"""One conversation: prompt, turn, loop, limits, transcript."""
