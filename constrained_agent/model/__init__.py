"""Weights, tokenizers and the KV cache: the only package that knows mlx-lm."""
