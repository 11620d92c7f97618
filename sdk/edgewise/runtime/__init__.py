"""Memory, threads and the kernel library: what runs a plan."""
