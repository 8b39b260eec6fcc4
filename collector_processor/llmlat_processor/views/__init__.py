"""Views of a finished trace: pure, and each for one reader."""
