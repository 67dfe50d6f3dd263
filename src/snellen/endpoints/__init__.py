"""Models and judges behind URLs: requests on the wire, failures, and limits."""
