"""The computed web: pages as a function of seed, URL and time; its server and its truth."""
