"""COMMANDS: parse, call, print, exit code."""
