"""Layer by layer: ablation of spans and influence of each adapter."""
