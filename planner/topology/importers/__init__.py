"""What operators have -> a topology document: one file a format, then one join of what all files say.

Each reader takes the text of one file and returns a `Reading`: facts on nodes, what it learnt, what it assumed, what the file cannot tell.
"""
