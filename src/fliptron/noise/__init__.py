"""Estimators of the flip rates."""
