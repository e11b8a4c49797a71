//! Open, write, read, flush, schedule.
