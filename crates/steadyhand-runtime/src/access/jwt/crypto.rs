//! Signatures of tokens, checked by ring: what is in the program already. Nothing is ever signed here, and secrets that
//! both sides share (HS…) are no way to tell who signed.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature as by_ring;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// From here on tokens can be checked. An application that has chosen another provider keeps it.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    // A key of another family never gets to see the signature.
    if key.family() != algorithm.family() || key.family() == AlgorithmFamily::Hmac {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(Checker {
        algorithm: *algorithm,
        key: key.clone(),
    }))
}

struct Checker {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Checker {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Checker {
    fn verify(&self, message: &[u8], signed: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match (self.algorithm, self.key.kind()) {
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                plain(&by_ring::ECDSA_P256_SHA256_FIXED, point, message, signed)
            }
            (Algorithm::ES384, DecodingKeyKind::SecretOrDer(point)) => {
                plain(&by_ring::ECDSA_P384_SHA384_FIXED, point, message, signed)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
                plain(&by_ring::ED25519, point, message, signed)
            }
            (algorithm, DecodingKeyKind::RsaModulusExponent { n, e }) => match rsa(algorithm) {
                Some(parameters) => {
                    by_ring::RsaPublicKeyComponents { n, e }.verify(parameters, message, signed)
                }
                None => Err(ring::error::Unspecified),
            },
            _ => Err(ring::error::Unspecified),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

fn plain(
    algorithm: &'static dyn by_ring::VerificationAlgorithm,
    key: &[u8],
    message: &[u8],
    signed: &[u8],
) -> Result<(), ring::error::Unspecified> {
    by_ring::UnparsedPublicKey::new(algorithm, key).verify(message, signed)
}

fn rsa(algorithm: Algorithm) -> Option<&'static by_ring::RsaParameters> {
    match algorithm {
        Algorithm::RS256 => Some(&by_ring::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Some(&by_ring::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Some(&by_ring::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Some(&by_ring::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Some(&by_ring::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Some(&by_ring::RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}
