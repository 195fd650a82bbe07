//! Reads what is compressed on its way past: a copy is decoded, what is forwarded stays as it came.

use std::io::Write;

use axum::http::{HeaderMap, header};
use flate2::write::{GzDecoder, ZlibDecoder};

/// Fed in small pieces: compressed, one byte may stand for a thousand.
const PIECE_BYTES: usize = 1024;
const BROTLI_BUFFER_BYTES: usize = 4 * 1024;

/// A decoder for a body that comes in pieces.
pub(super) enum Decoder {
    Plain,
    Gzip(Box<GzDecoder<Vec<u8>>>),
    Deflate(Box<ZlibDecoder<Vec<u8>>>),
    Brotli(Box<brotli::DecompressorWriter<Vec<u8>>>),
}

/// It cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

impl Decoder {
    /// For a body with this head; none where it is encoded in a way we cannot read.
    pub(super) fn of(headers: &HeaderMap) -> Option<Decoder> {
        let mut all = headers.get_all(header::CONTENT_ENCODING).iter();
        let Some(coding) = all.next() else {
            return Some(Decoder::Plain);
        };
        if all.next().is_some() {
            return None;
        }
        match coding.to_str().ok()?.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Decoder::Plain),
            "gzip" | "x-gzip" => Some(Decoder::Gzip(Box::new(GzDecoder::new(Vec::new())))),
            "deflate" => Some(Decoder::Deflate(Box::new(ZlibDecoder::new(Vec::new())))),
            "br" => {
                let decoder = brotli::DecompressorWriter::new(Vec::new(), BROTLI_BUFFER_BYTES);
                Some(Decoder::Brotli(Box::new(decoder)))
            }
            _ => None,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Decoder::Plain)
    }

    /// Decodes a piece; `take` gets what it amounts to so far, in bounded pieces, and says whether to go on.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(&[u8]) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        if self.is_plain() {
            return take(bytes);
        }
        for piece in bytes.chunks(PIECE_BYTES) {
            let decoded = match self {
                Decoder::Plain => continue,
                Decoder::Gzip(decoder) => {
                    written(&mut **decoder, piece).map(|()| std::mem::take(decoder.get_mut()))
                }
                Decoder::Deflate(decoder) => {
                    written(&mut **decoder, piece).map(|()| std::mem::take(decoder.get_mut()))
                }
                Decoder::Brotli(decoder) => {
                    written(&mut **decoder, piece).map(|()| std::mem::take(decoder.get_mut()))
                }
            };
            take(&decoded?)?;
        }
        Ok(())
    }

    /// A whole body, if it is no larger than this once it is decoded.
    pub(super) fn whole(mut self, bytes: &[u8], bytes_max: usize) -> Result<Vec<u8>, Unreadable> {
        let mut whole = Vec::with_capacity(bytes.len());
        self.push(bytes, &mut |piece| {
            if whole.len() + piece.len() > bytes_max {
                return Err(Unreadable);
            }
            whole.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(whole)
    }
}

fn written(decoder: &mut dyn Write, piece: &[u8]) -> Result<(), Unreadable> {
    let written = decoder.write_all(piece).and_then(|()| decoder.flush());
    written.map_err(|_| Unreadable)
}
