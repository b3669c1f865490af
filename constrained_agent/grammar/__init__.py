"""Grammars and the engine that masks tokens: the only package that knows LLGuidance."""
