"""TABLES for the terminal."""
