//! What a page says by its places, put where Markdown can say it: in tables whose rows are not alike, in lists of terms, in what is
//! raised. What stands apart on the page would be one word in the text otherwise, and one number.

use dom_query::{Document, NodeRef};

/// The most cells that are put into the tables of one page, and the most that one cell may reach over.
const MAX_CELLS: usize = 20_000;
const MAX_SPAN: usize = 100;

/// Does all of it.
pub(super) fn make(document: &Document) {
    made(document, MAX_CELLS);
}

/// The same with at most so many cells that are put in.
fn made(document: &Document, most_cells: usize) {
    let mut left = most_cells;
    for table in document.select("table").nodes() {
        if table.descendants_it().any(|inner| inner.has_name("table")) {
            // A page is laid out by it: each cell is a paragraph of its own.
            for cell in table.find(&["tr"]).iter().flat_map(NodeRef::element_children).filter(is_cell) {
                cell.append_child(&cell.tree.new_element("br"));
            }
        } else {
            left = filled(table, left);
        }
    }
    for (selector, name) in [("dl", "div"), ("dt, dd, summary", "p")] {
        document.select(selector).nodes().iter().for_each(|node| node.rename(name));
    }
    for raised in document.select("sup").nodes().iter().filter(|raised| !raised.text().trim().is_empty()) {
        raised.prepend_child(&raised.tree.new_text("^"));
    }
}

fn is_cell(node: &NodeRef<'_>) -> bool {
    node.has_name("td") || node.has_name("th")
}

/// A cell like one that is there, where more may be put in.
fn another<'t>(like: &NodeRef<'t>, text: &str, left: &mut usize) -> Option<NodeRef<'t>> {
    *left = left.checked_sub(1)?;
    let cell = like.tree.new_element(if like.has_name("th") { "th" } else { "td" });
    cell.set_text(text);
    Some(cell)
}

/// Puts into each row the cells that it lacks: those that others reach over, and empty ones at its end. How many more may be put in.
fn filled(table: &NodeRef<'_>, mut left: usize) -> usize {
    let rows: Vec<Vec<NodeRef<'_>>> = table
        .find(&["tr"])
        .iter()
        .map(|row| row.element_children().into_iter().filter(is_cell).collect::<Vec<_>>())
        .filter(|cells| !cells.is_empty())
        .collect();
    // What reaches down into the next rows: its column, for how many, and what it says.
    let mut above: Vec<(usize, usize, String)> = Vec::new();
    let mut widths = Vec::with_capacity(rows.len());
    for cells in &rows {
        let mut column = 0;
        let mut reaching = std::mem::take(&mut above);
        for cell in cells {
            while let Some(at) = reaching.iter().position(|(place, ..)| *place == column) {
                let (place, rows, text) = reaching.swap_remove(at);
                if let Some(new) = another(cell, &text, &mut left) {
                    cell.insert_before(&new);
                }
                if rows > 1 {
                    above.push((place, rows - 1, text));
                }
                column += 1;
            }
            let span = |name: &str| {
                let span = cell.attr(name).and_then(|span| span.trim().parse::<usize>().ok()).unwrap_or(1);
                span.clamp(1, MAX_SPAN)
            };
            let (wide, high) = (span("colspan"), span("rowspan"));
            for more in 0..wide {
                if high > 1 {
                    above.push((
                        column + more,
                        high - 1,
                        if more == 0 { cell.text().trim().to_owned() } else { String::new() },
                    ));
                }
            }
            for _ in 1..wide {
                if let Some(new) = another(cell, "", &mut left) {
                    cell.insert_after(&new);
                }
            }
            cell.remove_attrs(&["colspan", "rowspan"]);
            column += wide;
        }
        // What reaches down behind the last cell.
        reaching.sort_by_key(|(place, ..)| std::cmp::Reverse(*place));
        while let Some((place, rows, text)) = reaching.pop() {
            if let Some((last, new)) = cells.last().and_then(|last| Some((last, another(last, &text, &mut left)?)))
                && let Some(row) = last.parent()
            {
                row.append_child(&new);
                column += 1;
            }
            if rows > 1 {
                above.push((place, rows - 1, text));
            }
        }
        widths.push(column);
    }
    let widest = widths.iter().copied().max().unwrap_or(0);
    for (cells, width) in rows.iter().zip(widths) {
        let Some((first, row)) = cells.first().and_then(|first| Some((first, first.parent()?))) else { continue };
        for _ in width..widest {
            if let Some(new) = another(first, "", &mut left) {
                row.append_child(&new);
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use dom_query::Document;

    use super::super::readable::markdown;
    use super::{MAX_CELLS, MAX_SPAN, made};

    fn said(html: &str) -> Vec<String> {
        markdown(html).lines().filter(|line| !line.is_empty() && !line.contains("--")).map(str::to_owned).collect()
    }

    #[test]
    fn rows_that_are_not_alike_keep_their_cells_apart() {
        let head = "<tr><th>Year</th><th>Sales</th></tr>";
        for (rows, expected) in [
            ("<tr><td>2023</td><td>10</td></tr><tr><td colspan=2>sum</td></tr>", ["| 2023 | 10 |", "| sum |  |"]),
            ("<tr><td rowspan=2>2023</td><td>10</td></tr><tr><td>20</td></tr>", ["| 2023 | 10 |", "| 2023 | 20 |"]),
            ("<tr><td>1</td><td rowspan=9>x</td></tr><tr><td>3</td></tr>", ["| 1 | x |", "| 3 | x |"]),
            ("<tr><td>1</td><td>2</td></tr><tr><td>3</td></tr>", ["| 1 | 2 |", "| 3 |  |"]),
        ] {
            let table = format!("<table>{head}{rows}</table>");
            assert_eq!(said(&table), [&["| Year | Sales |"][..], &expected].concat(), "{rows}");
        }
        assert_eq!(
            said("<table><tr><td>1</td><td><table><tr><td>2</td><td>3</td></tr></table></td></tr></table>")
                .concat()
                .matches("12")
                .count(),
            0
        );
    }

    #[test]
    fn terms_and_what_is_raised_are_no_part_of_what_is_before_them() {
        assert_eq!(said("<dl><dt>Height</dt><dd>180</dd><dt>Weight</dt><dd>70</dd></dl>"), ["Height", "180", "Weight", "70"]);
        assert_eq!(said("<p>10<sup>6</sup> m<sup></sup></p>"), ["10^6 m"]);
        assert_eq!(said("<details><summary>More</summary>hidden</details>"), ["More", "hidden"]);
    }

    #[test]
    fn a_cell_that_reaches_over_everything_is_bounded() {
        let cells = |rows: usize, most: usize| {
            let row = "<tr><td colspan=99999 rowspan=99999>x</td></tr>";
            let document = Document::from(format!("<table>{}</table>", row.repeat(rows)));
            made(&document, most);
            document.select("td").length()
        };
        assert_eq!(cells(1, MAX_CELLS), MAX_SPAN);
        assert_eq!(cells(10, 250), 10 + 250);
    }
}
