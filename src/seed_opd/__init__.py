"""SEED: self-evolving on-policy distillation for training language-model agents."""
