"""State: what outlives a request, summed over processes and stored across restarts."""
