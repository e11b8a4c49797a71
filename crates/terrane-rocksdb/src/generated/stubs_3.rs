//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use crate::border::Pointer;

stub! { silent rocksdb_logger_destroy(Pointer) }
stub! { silent rocksdb_sst_partitioner_factory_destroy(Pointer) }
stub! { silent rocksdb_sst_partitioner_fixed_prefix_factory_create(usize) -> Pointer }
stub! { silent rocksdb_walfilter_create(Pointer, Pointer, Pointer, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_walfilter_destroy(Pointer) }
stub! { failing rocksdb_create_dir_if_missing(Pointer, Pointer) }
stub! { nothing rocksdb_env_join_all_threads(Pointer) }
stub! { nothing rocksdb_env_lower_high_priority_thread_pool_cpu_priority(Pointer) }
stub! { nothing rocksdb_env_lower_high_priority_thread_pool_io_priority(Pointer) }
stub! { nothing rocksdb_env_lower_thread_pool_cpu_priority(Pointer) }
stub! { nothing rocksdb_env_lower_thread_pool_io_priority(Pointer) }
