"""Reference pages as Markdown, made from the sources."""
