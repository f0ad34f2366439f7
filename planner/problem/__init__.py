"""THE QUESTION: frozen documents of deployments, workload, targets and objective, read with positions."""
