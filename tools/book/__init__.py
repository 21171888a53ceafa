"""The book: what Sphinx needs beyond the pages of docs/. `docs/conf.py` names ``extension.py``, the only file here that
needs Sphinx.

Pages are plain Markdown that a forge shows as well. A line ``<!-- generated: NAME -->`` stands for text that is made
from the sources (``generated.py``), ``<!-- file: PATH -->`` for a file of the repository that is a page of the book,
too.
"""
