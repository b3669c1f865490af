"""What the model can call: bounded file access, commands, patches."""
