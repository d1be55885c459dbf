//! Answers in their stored form: zstd, with a dictionary of their endpoint.
//!
//! A frame names its dictionary by zstd's own id, so answers of every version stay readable; one
//! without an id has none. `script/bench dictionaries` makes the files (docs/decisions/0051).

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read};
use std::num::NonZeroU32;
use std::sync::OnceLock;

use bytes::Bytes;
use zstd::bulk::Compressor;
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::get_dict_id_from_frame;

use crate::contract::Endpoint;

/// With a dictionary, level 3 makes answers no smaller and takes twice the time, and level 6 makes
/// them an eighth smaller for six times the time (docs/decisions/0051).
const LEVEL: i32 = 1;

/// The largest answer after decompression (security.md, rule 19); what is stored was smaller.
const MAX_ANSWER_BYTES: u64 = 8 << 20;

/// A file of `dictionaries`, prepared when it is first needed: that takes longer than an answer.
struct Dictionary {
    id: u32,
    endpoint: Endpoint,
    file: &'static [u8],
    encoder: OnceLock<io::Result<EncoderDictionary<'static>>>,
    decoder: OnceLock<io::Result<DecoderDictionary<'static>>>,
}

impl Dictionary {
    const fn new(id: u32, endpoint: Endpoint, file: &'static [u8]) -> Self {
        Self {
            id,
            endpoint,
            file,
            encoder: OnceLock::new(),
            decoder: OnceLock::new(),
        }
    }

    fn encoder(&self) -> Option<&EncoderDictionary<'static>> {
        let prepare = || EncoderDictionary::try_copy(self.file, LEVEL);
        self.encoder.get_or_init(prepare).as_ref().ok()
    }

    fn decoder(&self) -> io::Result<&DecoderDictionary<'static>> {
        let prepare = || DecoderDictionary::try_copy(self.file);
        let prepared = self.decoder.get_or_init(prepare).as_ref();
        prepared.map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }
}

/// All that ever compressed an answer. An endpoint's last one compresses new answers.
///
/// A file never changes and is never removed: stored answers name it. An id is 40,000, a hundred for
/// each endpoint, and the version.
static DICTIONARIES: [Dictionary; 5] = [
    Dictionary::new(
        40_101,
        Endpoint::FlightsOneway,
        include_bytes!("dictionaries/flights-oneway-1.zstd-dict"),
    ),
    Dictionary::new(
        40_201,
        Endpoint::FlightsRoundtrip,
        include_bytes!("dictionaries/flights-roundtrip-1.zstd-dict"),
    ),
    Dictionary::new(
        40_301,
        Endpoint::HotelsSearch,
        include_bytes!("dictionaries/hotels-search-1.zstd-dict"),
    ),
    Dictionary::new(
        40_401,
        Endpoint::HotelsByName,
        include_bytes!("dictionaries/hotels-by-name-1.zstd-dict"),
    ),
    Dictionary::new(
        40_501,
        Endpoint::HotelsRooms,
        include_bytes!("dictionaries/hotels-rooms-1.zstd-dict"),
    ),
];

/// The stored form of an answer.
pub fn compress_answer(endpoint: Endpoint, text: &[u8]) -> Option<Bytes> {
    let mut newest_first = DICTIONARIES.iter().rev();
    compress_with(newest_first.find(|known| known.endpoint == endpoint), text)
}

/// The stored form of anything else.
pub fn compress(text: &[u8]) -> Option<Bytes> {
    compress_with(None, text)
}

fn compress_with(dictionary: Option<&'static Dictionary>, text: &[u8]) -> Option<Bytes> {
    thread_local! {
        /// Creating one costs several times what compressing an answer does.
        static COMPRESSOR: RefCell<Compressor<'static>> = RefCell::default();
    }
    COMPRESSOR.with_borrow_mut(|compressor| {
        match dictionary {
            Some(dictionary) => compressor.set_prepared_dictionary(dictionary.encoder()?),
            None => compressor.set_compression_level(LEVEL),
        }
        .ok()?;
        compressor.compress(text).ok().map(Bytes::from)
    })
}

/// What [`compress_answer`] or [`compress`] made, at most [`MAX_ANSWER_BYTES`] of it.
///
/// # Errors
/// If it is no zstd, or names a dictionary that this version of the program does not have.
pub fn decompress(packed: &[u8]) -> io::Result<Vec<u8>> {
    let decoder = match get_dict_id_from_frame(packed) {
        None => zstd::Decoder::with_buffer(packed)?,
        Some(id) => zstd::Decoder::with_prepared_dictionary(packed, decoder_dictionary(id)?)?,
    };
    let mut text = Vec::new();
    decoder.take(MAX_ANSWER_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

fn decoder_dictionary(id: NonZeroU32) -> io::Result<&'static DecoderDictionary<'static>> {
    match DICTIONARIES.iter().find(|known| known.id == id.get()) {
        Some(known) => known.decoder(),
        None => Err(io::Error::new(
            ErrorKind::InvalidData,
            format!(
                "compressed with dictionary {id}, which this version of farescan does not have"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use sha2::{Digest as _, Sha256};

    use super::*;

    fn any_body() -> impl Strategy<Value = Vec<u8>> {
        let fares = "(\\{\"price\":\"\\$[0-9]{2,4}\",\"airline\":\"[A-Za-z ]{3,12}\",\"stops\":[0-3]\\},?){0,60}";
        prop_oneof![
            fares.prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..4_000),
        ]
    }

    proptest! {
        #[test]
        fn each_endpoints_answer_is_decompress(body in any_body()) {
            for endpoint in Endpoint::ALL {
                let packed = compress_answer(*endpoint, &body).unwrap();
                prop_assert_eq!(&decompress(&packed).unwrap(), &body);
            }
        }
    }

    #[test]
    fn each_search_has_a_dictionary_and_names_it() {
        for endpoint in Endpoint::SEARCHES {
            let packed = compress_answer(*endpoint, b"[]").unwrap();
            let id = get_dict_id_from_frame(&packed).unwrap().get();
            let named = DICTIONARIES.iter().find(|known| known.id == id).unwrap();
            assert_eq!(named.endpoint, *endpoint);
        }
    }

    #[test]
    fn an_answer_without_a_dictionary_is_read() {
        for level in [1, 3, 19] {
            let packed = zstd::encode_all(&b"[{\"price\":\"$99\"}]"[..], level).unwrap();
            assert_eq!(decompress(&packed).unwrap(), b"[{\"price\":\"$99\"}]");
        }
        compress_answer(Endpoint::FlightsOneway, b"[]").unwrap();
        let packed = compress(b"{\"http_status\":200}").unwrap();
        assert_eq!(get_dict_id_from_frame(&packed), None);
        assert_eq!(decompress(&packed).unwrap(), b"{\"http_status\":200}");
    }

    #[test]
    fn an_unknown_dictionary_is_an_error() {
        let mut other = DICTIONARIES[0].file.to_vec();
        other[4..8].copy_from_slice(&40_199_u32.to_le_bytes());
        let mut compressor = Compressor::with_dictionary(1, &other).unwrap();
        let packed = compressor.compress(b"[{\"price\":\"$99\"}]").unwrap();
        assert_eq!(
            decompress(&packed).unwrap_err().to_string(),
            "compressed with dictionary 40199, which this version of farescan does not have"
        );
    }

    #[test]
    fn no_more_is_read_than_the_largest_answer() {
        let zeros = vec![b'0'; usize::try_from(MAX_ANSWER_BYTES).unwrap() + 1];
        let packed = compress_answer(Endpoint::FlightsOneway, &zeros).unwrap();
        assert!(packed.len() < 10_000, "{} bytes", packed.len());
        assert_eq!(decompress(&packed).unwrap().len(), zeros.len() - 1);
    }

    /// Stored answers name these files. Never change a digest: add a version (docs/decisions/0051).
    #[test]
    fn the_dictionaries_are_those_that_stored_answers_name() {
        let files: Vec<_> = DICTIONARIES
            .iter()
            .map(|known| (known.id, short_digest(known.file)))
            .collect();
        let pinned = [
            (40_101, "a4e288142414e12b"),
            (40_201, "cd76da52eb14c3a4"),
            (40_301, "5891ab95dedfd084"),
            (40_401, "98c039006df2fb6d"),
            (40_501, "edeb33c7906b8610"),
        ];
        assert_eq!(files, pinned.map(|(id, digest)| (id, digest.to_owned())));
        let ids: BTreeSet<_> = DICTIONARIES.iter().map(|known| known.id).collect();
        assert_eq!(ids.len(), DICTIONARIES.len());
        for known in &DICTIONARIES {
            let id = zstd::zstd_safe::get_dict_id_from_dict(known.file);
            assert_eq!(id.map(NonZeroU32::get), Some(known.id));
        }
    }

    fn short_digest(file: &[u8]) -> String {
        let digest = Sha256::digest(file);
        digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}
