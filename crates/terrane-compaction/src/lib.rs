//! Jobs, pickers and the merge.
