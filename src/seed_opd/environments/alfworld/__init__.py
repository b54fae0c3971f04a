"""ALFWorld: household tasks in text, played natively from their game files."""
