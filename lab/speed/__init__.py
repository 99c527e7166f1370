"""What a crawl costs: CPU, memory, latency."""
