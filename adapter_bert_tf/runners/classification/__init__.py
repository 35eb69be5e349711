"""Classification, regression and multi-label tasks, one or several together."""
