"""State: what outlives a request, summed over processes and kept across restarts."""
