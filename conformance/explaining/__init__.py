"""What a requirement or a mistake is: its text, what the mistake costs, and how it is mended."""
