//! Filters: may this key be present?
