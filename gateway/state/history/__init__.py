"""History: what was counted, by the minute for a day and by the day for 400 days."""
