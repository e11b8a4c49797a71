//! Annotated hex of any stored file.
