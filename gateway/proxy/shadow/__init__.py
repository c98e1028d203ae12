"""Shadow traffic: captures requests, replays them in the background, and compares the answers."""
