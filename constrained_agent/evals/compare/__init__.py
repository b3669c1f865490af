"""Before and after: what a constraint does to how often output parses, lands, and is right."""
