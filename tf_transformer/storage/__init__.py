"""Files and folders: written whole or not at all, by one writer at a time, and read line by line."""
