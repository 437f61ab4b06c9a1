"""What a running process shows of itself: metrics, health, and a page for people."""
