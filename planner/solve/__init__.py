"""THE FORMULATION: the only room that imports a solver."""
