//! The record format of a spool file. Pure.
//!
//! ```text
//!  file    MAGIC, then records
//!  record  length u32 · checksum of the payload u32 · checksum of these eight bytes u32 · payload
//! ```
//!
//! Numbers are little endian, checksums CRC-32. The header has its own checksum, so that its length
//! is reliable: a reader skips a damaged payload and reads the records after it.

/// The first bytes of a file: its kind and version.
pub(super) const MAGIC: &[u8; 16] = b"farescan spool 1";
/// Bytes before a payload.
pub(super) const HEADER_LEN: usize = 12;
/// The longest payload: an incompressible body of 8 MiB and its header.
pub(super) const MAX_PAYLOAD: usize = 16 * 1024 * 1024;

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader {
    length: u32,
    checksum: u32,
}

impl RecordHeader {
    /// Reads a header; `None`: its checksum or its length is wrong.
    pub(super) fn read(bytes: [u8; HEADER_LEN]) -> Option<Self> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let header = Self {
            length: word(0),
            checksum: word(4),
        };
        (word(8) == crc32fast::hash(&bytes[..8]) && header.length() <= MAX_PAYLOAD)
            .then_some(header)
    }

    /// Bytes of the payload.
    pub(super) fn length(self) -> usize {
        self.length as usize
    }

    /// Whether the payload has the length and checksum of the header.
    pub(super) fn matches(self, payload: &[u8]) -> bool {
        payload.len() == self.length() && crc32fast::hash(payload) == self.checksum
    }
}

/// Appends a record to `bytes`; `false`: the payload is too long.
pub(super) fn append_record(payload: &[u8], bytes: &mut Vec<u8>) -> bool {
    let Some(length) = u32::try_from(payload.len())
        .ok()
        .filter(|length| *length as usize <= MAX_PAYLOAD)
    else {
        return false;
    };
    let begin = bytes.len();
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let checksum = crc32fast::hash(&bytes[begin..]);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(payload);
    true
}
