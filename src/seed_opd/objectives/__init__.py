"""The mathematics of training: pure functions of tensors, without files, models or configuration.

Every loss works on a flat vector `(tokens,)`: the response tokens of many samples, joined in sample order, no padding.
"""
