"""What a rank notes of its calls, for itself and for others."""
