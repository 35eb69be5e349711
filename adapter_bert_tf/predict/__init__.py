"""Texts in, labels, scores and answers out: from lists, data frames and files of any size."""
