//! Jobs for workers on other machines.

mod table;
