//! The pins of clones as text for Prometheus, as `Statistics::to_prometheus` has the metrics of the engine.

use std::io::{self, Write};

use terrane_remote::ClonePin;

/// A gauge per pin: name, help text, value.
type Gauge = (&'static str, &'static str, fn(&ClonePin) -> String);

const GAUGES: [Gauge; 3] = [
    ("objects", "Data objects that a pin keeps for a clone. Unit: objects.", |pin| pin.objects.to_string()),
    ("bytes", "Bytes of the data objects that a pin keeps for a clone. Unit: bytes.", |pin| {
        pin.bytes.to_string()
    }),
    ("created_seconds", "When a pin was created, since the Unix epoch. Unit: seconds.", |pin| {
        pin.created.as_secs_f64().to_string()
    }),
];

/// Writes how many pins there are, and a line of each gauge for each of them.
pub(super) fn to_prometheus(pins: &[ClonePin], out: &mut dyn Write) -> io::Result<()> {
    let about = "Pins by which clones keep data objects of this database. Unit: pins.";
    writeln!(out, "# HELP terrane_clone_pins {about}\n# TYPE terrane_clone_pins gauge")?;
    writeln!(out, "terrane_clone_pins {}", pins.len())?;
    for (name, about, value) in GAUGES.iter().filter(|_| !pins.is_empty()) {
        writeln!(out, "# HELP terrane_clone_pin_{name} {about}\n# TYPE terrane_clone_pin_{name} gauge")?;
        for pin in pins {
            let (number, clone) = (pin.number, escaped(&pin.clone));
            let labels = format!("pin=\"{number:032x}\",clone=\"{clone}\"");
            writeln!(out, "terrane_clone_pin_{name}{{{labels}}} {}", value(pin))?;
        }
    }
    Ok(())
}

/// A value of a label: an address may have any character.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
