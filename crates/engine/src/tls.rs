//! What goes wrong with TLS, in words that say what to do.

use std::error::Error;

use plimsoll_core::plan::ExternalServer;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::EngineError;

/// Who may sign a server's certificate: the public authorities, and those of `tls_ca`.
pub(crate) fn roots(server: &ExternalServer) -> Result<RootCertStore, EngineError> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let Some(file) = &server.tls_ca else {
        return Ok(roots);
    };
    let unusable = |error: String| {
        EngineError::new(format!(
            "read {file}, the tls_ca of [server.{}]: {error}; it must be PEM",
            server.label
        ))
    };
    let mut count = 0;
    for certificate in
        CertificateDer::pem_file_iter(file).map_err(|error| unusable(error.to_string()))?
    {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| unusable(error.to_string()))?;
        count += 1;
    }
    if count == 0 {
        return Err(unusable("it holds no certificate".to_owned()));
    }
    Ok(roots)
}

/// TLS 1.2 and newer, and every certificate checked in full.
pub(crate) fn client_config(server: &ExternalServer) -> Result<ClientConfig, EngineError> {
    let builder =
        ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| EngineError::new(format!("set up TLS: {error}")))?;
    Ok(builder
        .with_root_certificates(roots(server)?)
        .with_no_client_auth())
}

/// Why a handshake failed, when `error` or what caused it is one of TLS.
pub(crate) fn explain(error: &(dyn Error + 'static), server: &ExternalServer) -> Option<String> {
    let found = find(error)?;
    let label = &server.label;
    Some(match found {
        rustls::Error::InvalidCertificate(reason) => format!(
            "the certificate of {} does not hold ({reason}); name who signed it with tls_ca in \
            [server.{label}], and write the host as the certificate does",
            server.place
        ),
        rustls::Error::AlertReceived(_)
        | rustls::Error::PeerIncompatible(_)
        | rustls::Error::InvalidMessage(_) => {
            format!(
                "{} and this program found no common TLS ({found}); {}",
                server.place,
                too_old(label)
            )
        }
        other => format!(
            "the TLS handshake with {} failed ({other}); look into the server's log",
            server.place
        ),
    })
}

/// What to do about a server that is too old for TLS 1.2.
pub(crate) fn too_old(label: &str) -> String {
    format!(
        "TLS 1.2 is the least, which servers before MySQL 5.6.46 and 5.7.28 mostly lack: go \
        through a tunnel to this machine, or set tls = \"off\" in [server.{label}] where the \
        network is safe"
    )
}

/// The error of rustls in a chain of causes. An error of the system may hold another one without
/// naming it as its cause.
fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        if let Some(inner) = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref)
        {
            return find(inner);
        }
        next = error.source();
    }
    None
}
