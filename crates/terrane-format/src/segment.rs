//! Segments: header, commit groups, durable-end marks.
