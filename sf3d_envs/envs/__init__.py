"""Environments: one batched tensor environment and thin shells over it."""
