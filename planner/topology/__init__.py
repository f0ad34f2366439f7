"""THE GRAPH: a networkx fabric with alpha and beta on its links; scale-up domains, hosts, leaves, spines; builders."""
