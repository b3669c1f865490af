"""What the model can call: bounded file access, one subprocess module, patches."""
