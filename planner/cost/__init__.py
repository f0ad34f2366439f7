"""PHYSICS: memory, compute, collectives, serving and money, on arrays of shapes, without input or output."""
