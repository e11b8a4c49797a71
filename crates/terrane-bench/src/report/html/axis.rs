//! The frame of a chart: scales, grid lines and labels.

use super::markup::Html;

/// Size of a chart in its own units; the page scales it.
pub(super) const WIDTH: f64 = 460.0;
pub(super) const HEIGHT: f64 = 210.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;

/// Labels of the x axis at their values, and how a value of the y axis is written.
type Labels<'l> = (&'l [(f64, String)], fn(f64) -> String);

/// Where values lie in a chart.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    /// Right end of the x axis; it begins at 0.
    pub(super) x_max: f64,
    /// Ends of the y axis.
    pub(super) y: (f64, f64),
    /// True if the y axis is logarithmic.
    pub(super) log: bool,
}

impl Frame {
    /// A linear frame from 0.
    pub(super) fn linear(x_max: f64, y_max: f64) -> Frame {
        Frame { x_max: x_max.max(1e-9), y: (0.0, nice_above(y_max.max(1e-9))), log: false }
    }

    /// A frame whose y axis is logarithmic, by whole powers of ten.
    pub(super) fn logarithmic(x_max: f64, y: (f64, f64)) -> Frame {
        let low = 10_f64.powf(y.0.max(1e-9).log10().floor());
        let high = 10_f64.powf(y.1.max(low * 1.001).log10().ceil());
        Frame { x_max, y: (low, high), log: true }
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        LEFT + (value / self.x_max).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        let (low, high) = self.y;
        let share = if self.log { (value.max(low) / low).ln() / (high / low).ln() } else { value / high };
        HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }

    /// A point as `x,y` for a line.
    pub(super) fn point(&self, x: f64, y: f64) -> String {
        format!("{:.1},{:.1}", self.x(x), self.y(y))
    }

    fn y_ticks(&self) -> Vec<f64> {
        let (low, high) = self.y;
        if !self.log {
            return (0..=4).map(|tick| high * f64::from(tick) / 4.0).collect();
        }
        std::iter::successors(Some(low), |tick| Some(tick * 10.0))
            .take_while(|tick| *tick <= high * 1.001)
            .collect()
    }

    /// A chart: the grid with labels, then what `inner` draws. `about` is the description for screen readers.
    pub(super) fn draw(
        &self,
        html: &mut Html,
        about: &str,
        labels: Labels<'_>,
        inner: impl FnOnce(&mut Html),
    ) {
        let view = format!("0 0 {WIDTH} {HEIGHT}");
        let scale = format!("{LEFT} {} {} {}", WIDTH - RIGHT, TOP, HEIGHT - BOTTOM);
        let ends = format!("{} {}", self.x_max, self.y.1);
        let mut attributes = vec![("viewBox", view.as_str()), ("role", "img"), ("aria-label", about)];
        if !self.log {
            attributes.extend([
                ("class", "over-time"),
                ("data-box", scale.as_str()),
                ("data-ends", ends.as_str()),
            ]);
        }
        html.nest("svg", &attributes, |html| {
            html.element("title", &[], about);
            for tick in self.y_ticks() {
                let y = format!("{:.1}", self.y(tick));
                let (left, right) = (format!("{LEFT}"), format!("{}", WIDTH - RIGHT));
                html.empty(
                    "line",
                    &[("class", "grid"), ("x1", &left), ("x2", &right), ("y1", &y), ("y2", &y)],
                );
                let (x, y) = (format!("{}", LEFT - 6.0), format!("{:.1}", self.y(tick) + 3.5));
                html.element("text", &[("class", "y"), ("x", &x), ("y", &y)], &labels.1(tick));
            }
            for (at, label) in labels.0 {
                let (x, y) = (format!("{:.1}", self.x(*at)), format!("{}", HEIGHT - 8.0));
                html.element("text", &[("class", "x"), ("x", &x), ("y", &y)], label);
            }
            inner(html);
        });
    }
}

/// Evenly spaced labels of a time axis, in seconds.
pub(super) fn time_labels(x_max: f64) -> Vec<(f64, String)> {
    let step = nice_above(x_max / 6.0);
    let count = (x_max / step).floor() as u32;
    let label = |value: f64| {
        if step < 1.0 { format!("{value:.*} s", decimals(step)) } else { format!("{value:.0} s") }
    };
    (0..=count).map(|tick| step * f64::from(tick)).map(|value| (value, label(value))).collect()
}

fn decimals(step: f64) -> usize {
    if step < 0.01 {
        3
    } else if step < 0.1 {
        2
    } else {
        1
    }
}

/// The least of 1, 2, 4, 5, 8 or 10 times a power of ten that is not below the value: a quarter of it is
/// short to write.
fn nice_above(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 4.0, 5.0, 8.0].into_iter().find(|factor| factor * power >= value * 0.999_999);
    factor.unwrap_or(10.0) * power
}
