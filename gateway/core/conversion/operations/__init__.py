"""Operations: one operation under another method, path and status in each of two versions."""
