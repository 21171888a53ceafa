"""Problems put together of costs: what is asked (``problem.py``), how it is read, what an answer says, and the
evaluation in float64 that answers are judged by."""
