"""Adapters of languages and domains: at the embeddings, and below those of tasks."""
