"""A coding agent on local weights whose every token is masked by a grammar.

Importing the package loads no weights, no mlx and no tokenizer; see README.md for the data flow.
"""

__version__ = "0.1.0"
