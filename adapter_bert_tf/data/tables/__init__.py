"""Tables of the user: CSV, TSV and JSON lines, read whole or as a stream."""
