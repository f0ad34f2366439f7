"""FACTS with sources: GPUs, links, models, engines' rules, prices. Unknown names are refused with the nearest match."""
