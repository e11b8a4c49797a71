//! The macro that makes a struct of options out of a list of rows.
//!
//! A row is: name, type, default, accepted values in words, a check of them, one sentence. The rows become
//! the fields with their documentation, the defaults, and four functions over all rows, which
//! [`Options`](super::Options) puts together: set from text, show as text, describe, check ranges. A struct
//! may end with fields of other such structs.

macro_rules! options {
    (
        $(#[$doc:meta])*
        struct $List:ident $prefix:literal $(, $(#[$part_doc:meta])* $part:ident: $Part:ty)*;
        $( $name:ident : $type:ty = $default:expr, $range:literal, $check:expr, $about:literal; )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $List {
            $(
                #[doc = $about]
                #[doc = ""]
                #[doc = concat!("Accepted: ", $range, ".")]
                pub $name: $type,
            )*
            $(
                $(#[$part_doc])*
                pub $part: $Part,
            )*
        }

        impl Default for $List {
            fn default() -> Self {
                $List { $( $name: $default, )* $( $part: <$Part>::default(), )* }
            }
        }

        impl $List {
            /// Sets the row with this name, without the prefix, from text; returns false if no row has this
            /// name.
            pub(in crate::options) fn set_listed(&mut self, name: &str, text: &str) -> $crate::Result<bool> {
                match name {
                    $( stringify!($name) => {
                        let named = concat!($prefix, stringify!($name));
                        self.$name = <$type as $crate::options::Setting>::parse(text).map_err(|why| {
                            $crate::Error::invalid(format!("option {named}={text}: {why}"))
                        })?;
                    } )*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            /// Every row with its current value as text.
            pub(in crate::options) fn show_listed(&self) -> Vec<(&'static str, String)> {
                use $crate::options::Setting;
                vec![ $( (concat!($prefix, stringify!($name)), self.$name.show()), )* ]
            }

            /// Descriptions of all rows.
            pub(in crate::options) fn describe_listed() -> Vec<$crate::options::OptionInfo> {
                use $crate::options::Setting;
                let default = $List::default();
                vec![ $( $crate::options::OptionInfo {
                    name: concat!($prefix, stringify!($name)),
                    default: default.$name.show(),
                    range: $range,
                    about: $about,
                }, )* ]
            }

            pub(in crate::options) fn check_listed(&self) -> $crate::Result<()> {
                use $crate::options::Setting;
                $( {
                    let accepts: fn(&$type) -> bool = $check;
                    if !accepts(&self.$name) {
                        let named = concat!($prefix, stringify!($name));
                        let shown = self.$name.show();
                        return Err($crate::Error::invalid(format!(
                            "option {named}={shown}: accepted is {}", $range
                        )));
                    }
                } )*
                Ok(())
            }
        }
    };
}
