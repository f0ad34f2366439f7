"""Replicas that keep apart on large fleets: their numbers are chosen first, under limits on how many can keep apart at all, and their places after."""
