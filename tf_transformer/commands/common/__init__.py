"""What commands have in common: options, settings, models and text files."""
