//! Workloads and reports.
