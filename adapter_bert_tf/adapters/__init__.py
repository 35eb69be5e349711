"""What is inserted into the frozen base: adapters, and the encoder that has room for them."""
