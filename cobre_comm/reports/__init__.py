"""What a rank tells its launcher and other ranks about itself, above all how it failed."""
