"""The page's wiring: what ``viewer/`` knows, drawn by viser, one file for each part of the page."""
