"""Federated rounds; comes with a later release."""
