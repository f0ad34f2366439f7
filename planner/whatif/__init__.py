"""WHAT IF: patches to a problem, re-solved and compared with the plan as it is; on this machine or on a Ray cluster."""
