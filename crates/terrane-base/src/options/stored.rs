//! Settings that belong to the database and not to one opening of it.

use super::Setting;

/// A setting that is stored with the database: a value, which is stored from now on, or nothing, so that the
/// stored value is used.
///
/// ```
/// # use terrane_base::options::{AsStored, Options};
/// let options = Options { history_bytes: AsStored::of(1 << 30), ..Options::default() }; // from now on
/// assert_eq!(options.history_bytes.get(), Some(&(1 << 30)));
/// assert_eq!(Options::default().history_bytes.get(), None); // as it was last set
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AsStored<T>(Option<T>);

impl<T> AsStored<T> {
    /// The stored value holds.
    pub const STORED: AsStored<T> = AsStored(None);

    /// `value` is stored and holds from now on.
    pub const fn of(value: T) -> Self {
        AsStored(Some(value))
    }

    /// The value, if the opening says one.
    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T: Setting> Setting for AsStored<T> {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text == "stored" { Ok(AsStored(None)) } else { T::parse(text).map(AsStored::of) }
    }

    fn show(&self) -> String {
        self.get().map_or_else(|| "stored".to_owned(), Setting::show)
    }
}
