"""The constrained token loop, and the mask and sampling that it uses."""
