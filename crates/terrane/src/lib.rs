//! Terrane, an embedded log-structured merge storage engine.
