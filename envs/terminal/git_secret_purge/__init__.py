"""terminal/GitSecretPurge: remove leaked secrets from a repository's whole history, and keep the rest."""
