"""THE CALCULATORS: one layout on paper, without a topology file: what it holds, how fast it is, and what would be better."""
