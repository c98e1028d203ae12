"""Operations that a version has at another path, or lacks."""
