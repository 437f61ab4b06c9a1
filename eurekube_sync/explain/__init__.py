"""Why something is registered, or is not: links from what a dry pass decided. Pure; it decides nothing by itself."""
