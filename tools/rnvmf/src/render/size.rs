// SPDX-License-Identifier: GPL-2.0

//! Numbers of bytes for people.

/// A size in decimal units, as `nvme list` has it.
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
    use super::size;

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
