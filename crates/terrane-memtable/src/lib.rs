//! Radix index over records in segments; global index.
