"""Plans that survive the loss of any one failure domain, at scale: counts first, by deployment, then places."""
