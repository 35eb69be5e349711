"""Plain text without labels: masked-language-model training."""
