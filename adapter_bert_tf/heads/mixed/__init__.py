"""Models of several tasks that are trained together."""
