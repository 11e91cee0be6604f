"""A pool of plugins and queries of our own, by which the choice among many is measured."""
