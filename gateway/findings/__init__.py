"""What needs attention, the verdict on retirement, and notifications."""
