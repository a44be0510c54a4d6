"""What a world starts with and where it drives: canonical routes and the lane-closure scenario sampler."""
