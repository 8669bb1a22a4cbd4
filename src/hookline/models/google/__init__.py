"""Models behind Google's Gemini API."""
