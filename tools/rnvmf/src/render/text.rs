// SPDX-License-Identifier: GPL-2.0

//! Text for people: tables and sizes.

/// Returns the lines of a table. A column is as wide as its widest cell, and two spaces separate
/// columns.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Returns a row of cells.
pub(crate) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}

/// Returns a number of bytes in decimal units, as `nvme list` prints it.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    // 999.995 and more would be printed as 1000.00.
    while value >= 999.995 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.2} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest() {
        let rows = [row(["A", "B", "C"]), row(["long", "x", ""])];
        assert_eq!(table(&rows), "A     B  C\nlong  x\n");
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn units() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (999_999, "1.00 MB"),
            (1 << 30, "1.07 GB"),
            (1 << 40, "1.10 TB"),
            (u64::MAX, "18.45 EB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
