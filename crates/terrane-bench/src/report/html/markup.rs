//! HTML that is balanced and escaped by construction.
//!
//! Elements nest by closures; text and attribute values pass through [`escape`]; names of elements and
//! attributes are `&'static str`, so nothing from a result file can become one. The text is XML as well:
//! attributes are quoted, empty elements closed.

use std::fmt::Write as _;

/// An attribute: name and value.
pub(super) type Attribute<'a> = (&'static str, &'a str);

/// HTML under construction.
#[derive(Default)]
pub(super) struct Html(String);

impl Html {
    /// The finished text.
    pub(super) fn into_string(self) -> String {
        self.0
    }

    /// An element around what `inner` builds.
    pub(super) fn nest(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        inner: impl FnOnce(&mut Html),
    ) {
        self.start(name, attributes);
        self.0.push('>');
        inner(self);
        write!(self.0, "</{name}>").expect("writing to a string does not fail");
        if matches!(
            name,
            "tr" | "section" | "figure" | "table" | "details" | "p" | "li" | "h2" | "h3" | "div"
        ) {
            self.0.push('\n');
        }
    }

    /// An element around a text.
    pub(super) fn element(&mut self, name: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.nest(name, attributes, |html| html.text(text));
    }

    /// An element without content.
    pub(super) fn empty(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.start(name, attributes);
        self.0.push_str("/>");
    }

    /// Text.
    pub(super) fn text(&mut self, text: &str) {
        escape(&mut self.0, text);
    }

    /// Markup that this program holds: never anything from a file.
    pub(super) fn fixed(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    fn start(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        write!(self.0, "<{name}").expect("writing to a string does not fail");
        for (name, value) in attributes {
            write!(self.0, " {name}=\"").expect("writing to a string does not fail");
            escape(&mut self.0, value);
            self.0.push('"');
        }
    }
}

/// Text without any character that has a meaning in HTML; those that XML forbids become U+FFFD.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            // Marks that turn the direction of text would let a label rewrite its neighbours.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}
