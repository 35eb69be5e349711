"""Adapters of AdapterHub's library `adapters`: its files, read and written."""
