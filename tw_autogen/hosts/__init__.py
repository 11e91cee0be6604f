"""Adapters: one package for each host framework; only here is one imported."""
