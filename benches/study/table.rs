//! Plain text tables.

/// Prints columns: the first two to the left, the others to the right.
pub fn print(headers: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .chain([headers[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<_> = (0..headers.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let cells: Vec<_> = cells
            .into_iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                if column < 2 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        println!("{}", cells.join("  ").trim_end());
    };
    line(headers.to_vec());
    for row in rows {
        line(row.iter().map(String::as_str).collect());
    }
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    if share.is_infinite() {
        "none".to_owned()
    } else {
        format!("{:.1} %", share * 100.0)
    }
}
