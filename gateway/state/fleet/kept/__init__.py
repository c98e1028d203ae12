"""What a replica keeps on a disk of its own, for its next start."""
