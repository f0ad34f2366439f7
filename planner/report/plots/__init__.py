"""PLOTS of what the commands print as JSON, drawn by Altair (extra `plot`) without a network."""
