"""CALIBRATION: benchmark logs, measurement runs and step times -> alpha, beta, profiles and the model's error."""
