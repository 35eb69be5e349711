"""Tokenized data of any size on the local disk: cache folders, rows in files, random orders."""
