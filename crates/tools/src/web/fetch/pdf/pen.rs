//! What the drawing of a page shows, as text.

use std::rc::Rc;

use lopdf::Object;
use lopdf::content::Operation;

use super::MAX_TEXT_BYTES;
use super::fonts::Font;

/// Writes what a page shows, with the white space that its places mean.
pub(super) struct Pen<'a, 'd> {
    out: &'a mut String,
    font: Option<Rc<Font<'d>>>,
    /// Of the font.
    size: f32,
    /// Of the text's own coordinates.
    scale: f32,
    /// Where the line begins.
    at: (f32, f32),
    leading: f32,
    /// Where the last text was shown, and how many characters it had.
    last: Option<(f32, f32, usize)>,
}

impl<'a, 'd> Pen<'a, 'd> {
    pub(super) fn new(out: &'a mut String) -> Self {
        Self { out, font: None, size: 12.0, scale: 1.0, at: (0.0, 0.0), leading: 0.0, last: None }
    }

    /// How many bytes were written.
    pub(super) fn written(&self) -> usize {
        self.out.len()
    }

    /// The operators of ISO 32000-1, section 9.4; `font` gives the one of a name.
    pub(super) fn follow(&mut self, operation: &Operation, font: impl FnOnce(&[u8]) -> Option<Rc<Font<'d>>>) {
        let operands = &operation.operands;
        let number = |index: usize| operands.get(index).and_then(|operand| operand.as_float().ok()).unwrap_or(0.0);
        match operation.operator.as_str() {
            "BT" => (self.at, self.scale) = ((0.0, 0.0), 1.0),
            "Tf" => {
                self.font = operands.first().and_then(|name| font(name.as_name().ok()?));
                self.size = number(1).abs();
            }
            "TL" => self.leading = number(0),
            "Td" => self.moved(number(0), number(1)),
            "TD" => {
                self.leading = -number(1);
                self.moved(number(0), number(1));
            }
            "Tm" => {
                self.scale = if number(3).abs() > f32::EPSILON { number(3) } else { 1.0 };
                self.at = (number(4), number(5));
            }
            "T*" => self.moved(0.0, -self.leading),
            "Tj" | "TJ" => self.show(operands),
            "'" => {
                self.moved(0.0, -self.leading);
                self.show(operands);
            }
            "\"" => {
                self.moved(0.0, -self.leading);
                self.show(operands.get(2..).unwrap_or_default());
            }
            _ => {}
        }
    }

    fn moved(&mut self, right: f32, up: f32) {
        self.at = (self.at.0 + right * self.scale.abs(), self.at.1 + up * self.scale);
    }

    fn show(&mut self, operands: &[Object]) {
        let Some(font) = self.font.clone() else { return };
        let height = (self.size * self.scale).abs().max(1.0);
        if let Some((x, y, chars)) = self.last {
            let (right, down) = ((self.at.0 - x).abs(), (self.at.1 - y).abs());
            let has_space = self.out.ends_with(char::is_whitespace);
            if down > height * 1.8 {
                self.out.push_str("\n\n");
            } else if down > height * 0.5 {
                self.out.push('\n');
            } else if right > 0.1 && !has_space && (chars > 1 || right > height) {
                // Text whose letters are placed one by one moves by a letter's width each time.
                self.out.push(' ');
            }
        }
        let before = self.out.len();
        written(self.out, &font, operands);
        let chars = self.out.get(before..).map_or(0, |shown| shown.chars().count());
        if chars > 0 {
            self.last = Some((self.at.0, self.at.1, chars));
        }
    }
}

/// The text of the operands of `Tj` and `TJ`; a wide gap between two of them is a space.
fn written(out: &mut String, font: &Font<'_>, operands: &[Object]) {
    for operand in operands {
        match operand {
            Object::String(bytes, _) => font.write(bytes, out, MAX_TEXT_BYTES.saturating_sub(out.len())),
            Object::Array(items) => {
                for item in items {
                    match item {
                        Object::String(..) => written(out, font, std::slice::from_ref(item)),
                        other if other.as_float().is_ok_and(|gap| gap < -180.0) && !out.ends_with(' ') => out.push(' '),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
