"""Adapters: one room a host framework; only here is one imported."""
