"""The local model: devices that randomise their own reports, and what a collector learns from them."""
