// SPDX-License-Identifier: GPL-2.0

//! Text for people: tables and sizes.

use std::fmt::Display;

/// Returns a table with a head line of words, or nothing if it has no rows.
pub(crate) fn table(head: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    let head = head.split(' ').map(str::to_owned).collect();
    let rows: Vec<_> = [head].into_iter().chain(rows).collect();
    if rows.len() == 1 {
        return String::new();
    }
    columns(&rows)
}

/// Returns a line for each row. A column is as wide as its widest cell; two spaces separate
/// columns.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<_> = cells
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Returns a value as a cell, or `-` if it is unknown.
pub(crate) fn known(value: Option<impl Display>) -> String {
    value.map_or("-".into(), |value| value.to_string())
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
        let row = ["long", "x", ""].map(str::to_owned).to_vec();
        assert_eq!(table("A B C", [row].into_iter()), "A     B  C\nlong  x\n");
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(table("A B", std::iter::empty()), "");
        assert_eq!(columns(&[]), "");
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
