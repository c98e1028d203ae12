"""The operations that write one value in another way: moments, money, words, texts."""
