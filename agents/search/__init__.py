"""Search: exact play of endings with all hands open, and what bots that look ahead share."""
