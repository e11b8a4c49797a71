//! Model, histories and crash checks.
