"""What follows the encoder: models, losses, and the signatures of SavedModels."""
