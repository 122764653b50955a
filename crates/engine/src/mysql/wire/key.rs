//! The server's public key, for a password that is sent over a network without TLS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mysql_common::crypto;

use super::error::WireError;

/// Padding of the encryption.
const PADDING_BYTES: usize = 42;
/// From 1024 to 16,384 bits; no server makes others.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 128..=2048;
/// 65,537 is usual.
const LONGEST_EXPONENT: usize = 8;

const PEM_START: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;

/// Mixes the password with the nonce and encrypts it. `key` is a PEM.
pub(super) fn encrypt(mut secret: Vec<u8>, nonce: &[u8], key: &[u8]) -> Result<Vec<u8>, WireError> {
    let modulus_bytes = std::str::from_utf8(key)
        .ok()
        .and_then(modulus_bytes)
        .ok_or(WireError::Malformed("an unusable public key"))?;
    if nonce.is_empty() {
        return Err(WireError::Malformed("an authentication without a nonce"));
    }
    if secret.len() + PADDING_BYTES > modulus_bytes {
        return Err(WireError::Unsupported(format!(
            "the password is too long for the server's key of {modulus_bytes} bytes"
        )));
    }
    for (byte, mask) in secret.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= mask;
    }
    Ok(crypto::encrypt(&secret, key))
}

/// The length of the key's modulus. `None` when the key is not as the library, which takes it for
/// granted, wants it.
fn modulus_bytes(pem: &str) -> Option<usize> {
    let body = pem.trim().strip_prefix(PEM_START)?.strip_suffix(PEM_END)?;
    let body: String = body.split_ascii_whitespace().collect();
    let der = STANDARD.decode(body).ok()?;
    let (outer, []) = element(&der, SEQUENCE)? else {
        return None;
    };
    let (_algorithm, key) = element(outer, SEQUENCE)?;
    let (bits, []) = element(key, BIT_STRING)? else {
        return None;
    };
    let (numbers, []) = element(bits.strip_prefix(&[0])?, SEQUENCE)? else {
        return None;
    };
    let (modulus, rest) = element(numbers, INTEGER)?;
    let (exponent, []) = element(rest, INTEGER)? else {
        return None;
    };
    // A zero keeps the number from being negative.
    let modulus = modulus.strip_prefix(&[0])?;
    let is_odd = modulus.last()? & 1 == 1;
    let is_full = modulus.first()? & 0x80 != 0;
    let has_exponent = exponent.iter().any(|&byte| byte != 0) && exponent.len() <= LONGEST_EXPONENT;
    (is_odd && is_full && has_exponent && MODULUS_BYTES.contains(&modulus.len()))
        .then_some(modulus.len())
}

/// The content of an element of DER, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = der.strip_prefix(&[tag])?.split_first()?;
    let (length, rest) = match length {
        short @ ..0x80 => (usize::from(short), rest),
        long => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            if bytes.len() > 4 {
                return None;
            }
            (
                bytes
                    .iter()
                    .fold(0, |length, &byte| length << 8 | usize::from(byte)),
                rest,
            )
        }
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut der = vec![tag, 0x82];
        der.extend((content.len() as u16).to_be_bytes());
        der.extend(content);
        der
    }

    fn pem_of(der: &[u8]) -> String {
        format!("{PEM_START}\n{}\n{PEM_END}\n", STANDARD.encode(der))
    }

    fn key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
        let numbers = [wrap(INTEGER, modulus), wrap(INTEGER, exponent)].concat();
        let bits = [vec![0], wrap(SEQUENCE, &numbers)].concat();
        wrap(
            SEQUENCE,
            &[wrap(SEQUENCE, b"algorithm"), wrap(BIT_STRING, &bits)].concat(),
        )
    }

    fn modulus(bytes: usize) -> Vec<u8> {
        [vec![0], vec![0xc3; bytes]].concat()
    }

    #[test]
    fn keys_are_checked_before_the_library_sees_them() {
        let usual = key(&modulus(256), &[1, 0, 1]);
        assert_eq!(
            encrypt(b"geheim\0".to_vec(), &[7; 20], pem_of(&usual).as_bytes())
                .unwrap()
                .len(),
            256
        );
        let longest = vec![b'x'; 256 - PADDING_BYTES];
        assert_eq!(
            encrypt(longest.clone(), &[7; 20], pem_of(&usual).as_bytes())
                .unwrap()
                .len(),
            256
        );
        let too_long = [longest, vec![b'x']].concat();
        assert!(matches!(
            encrypt(too_long, &[7; 20], pem_of(&usual).as_bytes()),
            Err(WireError::Unsupported(_))
        ));
        assert!(matches!(
            encrypt(vec![0], &[], pem_of(&usual).as_bytes()),
            Err(WireError::Malformed(_))
        ));

        let even = [modulus(255), vec![2]].concat();
        let refused = [
            pem_of(&key(&modulus(64), &[1, 0, 1])),
            pem_of(&key(&modulus(4096), &[1, 0, 1])),
            pem_of(&key(&even, &[1, 0, 1])),
            pem_of(&key(&modulus(256), &[0])),
            pem_of(&key(&modulus(256), &[1; 9])),
            pem_of(&key(&[], &[])),
            pem_of(b""),
            pem_of(&[usual.as_slice(), b"more"].concat()),
            pem_of(&usual).replace("BEGIN PUBLIC", "BEGIN PRIVATE"),
            pem_of(&usual).replacen('A', "-", 1),
            String::new(),
        ];
        for pem in refused {
            let error = encrypt(vec![0], &[7; 20], pem.as_bytes()).unwrap_err();
            assert!(
                matches!(error, WireError::Malformed("an unusable public key")),
                "{pem}: {error:?}"
            );
        }
        for cut in 0..usual.len() {
            assert_eq!(modulus_bytes(&pem_of(&usual[..cut])), None, "{cut}");
        }
    }

    proptest! {
        #[test]
        fn a_spoilt_key_never_panics(at in 0..300_usize, byte: u8, text in ".{0,60}") {
            let mut der = key(&modulus(256), &[1, 0, 1]);
            let at = at % der.len();
            der[at] = byte;
            let _ = encrypt(b"geheim\0".to_vec(), &[7; 20], pem_of(&der).as_bytes());
            let pem = format!("{PEM_START}{text}{PEM_END}");
            let _ = encrypt(b"geheim\0".to_vec(), &[7; 20], pem.as_bytes());
        }
    }
}
