"""The two stages: fine-tuning the policy to write skills, and the loop that learns from them."""
