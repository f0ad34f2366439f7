"""What a plan can be launched with: one file a target."""
