//! Bodies of fuzz targets whose decoders are not a part of the interface. Each takes any bytes, and panics
//! only if the code under test breaks a promise; `terrane-fuzz` runs them.

pub use crate::bucket::log::fuzzing::{object_log, object_log_seeds};
pub use crate::clones::fuzzing::{clone_object, clone_object_seeds};
pub use crate::jobs::fuzzing::{job_object, job_object_seeds};
pub use crate::store::fuzzing::{data_table, data_table_seeds};

#[cfg(feature = "grpc")]
pub use crate::grpc::fuzzing::{answer, answer_seeds, request, request_seeds};
