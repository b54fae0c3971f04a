"""All that touches tokens and weights: contexts, samples, and the engines that sample, score and train."""
