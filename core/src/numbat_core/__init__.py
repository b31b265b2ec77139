"""The distribution of the engine as the gates see it.

It stands outside `numbat`, so that listing what is installed does not load the engine.
"""
