"""Attention of fusions and task embeddings of hypernetworks."""
