"""Masked words: the head that predicts word pieces."""
