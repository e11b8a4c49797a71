//! Metasnapshots, edits, manifest.
