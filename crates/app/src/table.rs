//! Lists for people: columns of text.

use turnwright_terminal::clean_line;

/// The widest that a column but the last one grows, in characters.
const MAX_WIDTH: usize = 48;

/// Rows as lines, their columns below one another. A longer text pushes its own row only.
pub(crate) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> Vec<String> {
    let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|cell| clean_line(cell).into_owned()).collect()).collect();
    let width_of = |column: usize| {
        let widths = rows.iter().filter_map(|row| Some(row.get(column)?.chars().count()));
        widths.filter(|width| *width <= MAX_WIDTH).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS).map(width_of).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The first line of a text, at most `most` characters of it.
pub(crate) fn first_line(text: &str, most: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_stand_below_one_another_and_control_characters_are_visible() {
        let rows = [["a".to_owned(), "x".to_owned()], ["bcd".to_owned(), "y\x1b".to_owned()]];
        assert_eq!(table(&rows), ["a    x", "bcd  y␛"]);
    }
}
