//! Records in a file of bytes. Pure.
//!
//! ```text
//!  file    MAGIC, then records
//!  record  length u32 · checksum of the payload u32 · checksum of these eight bytes u32 · payload      (little endian, CRC-32)
//! ```
//!
//! The head has a checksum of its own, so that a length can be believed: a payload that was damaged is stepped over and the records
//! behind it are kept.

/// What a file begins with: its kind and its version. A file that begins otherwise is not ours to read.
pub(super) const MAGIC: &[u8; 16] = b"farescan spool 1";
/// Bytes before a payload.
pub(super) const HEAD: usize = 12;
/// The longest payload: a body of 8 MiB that no compression helps, and what stands beside it.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;

/// A record's first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    length: u32,
    checksum: u32,
}

impl Head {
    /// The head of what was written; `None`: it never was a whole head, or it has changed since.
    pub(super) fn read(bytes: [u8; HEAD]) -> Option<Self> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let head = Self {
            length: word(0),
            checksum: word(4),
        };
        (word(8) == crc32fast::hash(&bytes[..8]) && head.length() <= LONGEST).then_some(head)
    }

    /// Bytes of the payload.
    pub(super) fn length(self) -> usize {
        self.length as usize
    }

    /// Whether this is the payload that was written.
    pub(super) fn fits(self, payload: &[u8]) -> bool {
        payload.len() == self.length() && crc32fast::hash(payload) == self.checksum
    }
}

/// Puts a record at the end of `bytes`; `false`: the payload is too long to be one.
pub(super) fn put(payload: &[u8], bytes: &mut Vec<u8>) -> bool {
    let Some(length) = u32::try_from(payload.len())
        .ok()
        .filter(|length| *length as usize <= LONGEST)
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
