//! `farescan export`: the items of a scan as a file. An incomplete file never has the name of a
//! complete one.

use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use super::Failure;
use super::client::{ApiClient, ClientArgs};
use super::exit::CommandEnd;
use super::for_terminal::ForTerminal;
use super::ids;
use super::partial_file::PartialFile;
use crate::wrap::note;
use farescan_contract::ids::ScanId;
use farescan_contract::primitives::ListFormat;

/// Settings of `export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Scan: its id, the beginning of it, or `@last`
    #[arg(value_name = "SCAN", default_value = "@last")]
    scan: String,
    /// File to write: `.csv`, `.ndjson` or `.parquet`; `-` is standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Format, if the name of the file does not say it: `csv`, `ndjson` or `parquet` [default: csv]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ListFormat>,
    /// With the whole answer of each search
    #[arg(long)]
    answers: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Writes the file.
pub async fn run(args: ExportArgs) -> Result<(), Failure> {
    let is_file = ["csv", "ndjson", "parquet"]
        .iter()
        .any(|end| args.scan.ends_with(&format!(".{end}")));
    if is_file {
        return Err(CommandEnd::usage(format!(
            "{:?} is a file, not a scan\n  next: `farescan export @last -o {}`",
            args.scan, args.scan
        )));
    }
    let session = args.client.open()?;
    let format = format(&args)?;
    let id = ids::find::<ScanId>(&session.client, &args.scan).await?;
    let expand = if args.answers { "&expand=answer" } else { "" };
    let path = format!("/v1/scans/{id}/items?format={format}{expand}");
    if args.output == Path::new("-") {
        return print(&session.client, &path).await;
    }
    let mut file = PartialFile::create(&args.output)?;
    stream(&session.client, &path, &mut file).await?;
    file.complete()?;
    note!("{} has the items of {id}", args.output.display());
    Ok(())
}

/// The given format, else that of the file's name.
fn format(args: &ExportArgs) -> Result<ListFormat, Failure> {
    let name = args.output.extension().and_then(|end| end.to_str());
    let of_name = match name {
        Some("csv") => Some(ListFormat::Csv),
        Some("ndjson" | "jsonl") => Some(ListFormat::Ndjson),
        Some("parquet") => Some(ListFormat::Parquet),
        _ => None,
    };
    let default = if args.client.json {
        ListFormat::Ndjson
    } else {
        ListFormat::Csv
    };
    match args.format.or(of_name) {
        Some(ListFormat::Json) => Err(CommandEnd::usage(
            "--format: found json; expected csv, ndjson or parquet (ndjson is JSON, one item a line)",
        )),
        Some(format) => Ok(format),
        None if args.output == Path::new("-") => Ok(default),
        None => Err(CommandEnd::usage(format!(
            "--output: {} does not say a format; expected .csv, .ndjson or .parquet, or --format",
            args.output.display()
        ))),
    }
}

/// Writes an export of the API to standard output: as it comes, and to a terminal with hidden
/// characters as escapes.
pub async fn print(client: &ApiClient, path: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        stream(client, path, &mut ForTerminal::new(out)).await
    } else {
        stream(client, path, &mut out).await
    }
}

/// Writes an export of the API as it comes.
async fn stream(client: &ApiClient, path: &str, out: &mut impl Write) -> Result<(), Failure> {
    let mut response = client.download(path).await?;
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| client.broken(&error))?
    {
        out.write_all(&chunk)?;
    }
    Ok(out.flush()?)
}
