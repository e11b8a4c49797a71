//! Parts of the crates `terrane-engine` and `terrane` under the schedule explorer `shuttle`.
//!
//! The tests compile the modules that they explore into themselves, by their paths. They are a crate of
//! their own because a feature of a crate is built with all that the crate stands on: as tests of
//! `terrane-engine` and `terrane` they had the whole engine built once more, for modules that need the
//! lowest crates alone. Explorations of other crates are beside their subject, in `tests/shuttle.rs`.
