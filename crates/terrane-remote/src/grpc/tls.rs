//! Certificates of both sides, for encrypted connections (feature `tls`).

use std::path::PathBuf;

#[cfg(not(feature = "tls"))]
use terrane_base::Error;
use terrane_base::Result;

/// Files in PEM. A server needs a certificate and its key, a client the certificate of the authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain of this side, in PEM. A client without one sends no certificate.
    pub certificate: Option<PathBuf>,
    /// The key of the own certificate.
    pub key: Option<PathBuf>,
    /// The certificate of the authority that signs those of the other side. A server without one asks clients
    /// for none.
    pub authority: Option<PathBuf>,
}

impl TlsFiles {
    /// The files that the environment names: `TERRANE_TLS_CERTIFICATE`, `TERRANE_TLS_KEY` and
    /// `TERRANE_TLS_AUTHORITY`.
    #[must_use]
    pub fn of_environment() -> TlsFiles {
        let file = |name: &str| std::env::var_os(name).map(PathBuf::from);
        TlsFiles {
            certificate: file("TERRANE_TLS_CERTIFICATE"),
            key: file("TERRANE_TLS_KEY"),
            authority: file("TERRANE_TLS_AUTHORITY"),
        }
    }
}

#[cfg(not(feature = "tls"))]
mod absent {
    use tonic::transport::{Endpoint, server::Server};

    use super::*;

    fn absent<T>() -> Result<T> {
        Err(Error::invalid(
            "this program was built without encrypted connections; build it with the feature tls",
        ))
    }

    pub(in crate::grpc) fn server(_: Server, _: &TlsFiles) -> Result<Server> {
        absent()
    }

    pub(in crate::grpc) fn client(_: Endpoint, _: &TlsFiles, _: &str) -> Result<Endpoint> {
        absent()
    }
}

#[cfg(not(feature = "tls"))]
pub(super) use absent::{client, server};

#[cfg(feature = "tls")]
mod present {
    use std::path::Path;

    use terrane_base::Error;
    use terrane_device::{Disk, OpenMode, PosixDisk};
    use tonic::transport::{
        Certificate, ClientTlsConfig, Endpoint, Identity, ServerTlsConfig, server::Server,
    };

    use super::*;

    /// Longest file of certificates.
    const FILE_BYTES_MAX: u64 = 1 << 20;

    /// A server that shows a certificate, and wants one of each client if there is an authority.
    pub(in crate::grpc) fn server(server: Server, files: &TlsFiles) -> Result<Server> {
        let identity = identity(files)?
            .ok_or_else(|| Error::invalid("an encrypted service needs a certificate and its key"))?;
        let mut config = ServerTlsConfig::new().identity(identity);
        if let Some(authority) = &files.authority {
            config = config.client_ca_root(Certificate::from_pem(text(authority)?));
        }
        server.tls_config(config).map_err(|why| refused(&why))
    }

    /// An endpoint whose server must show a certificate for `host`.
    pub(in crate::grpc) fn client(endpoint: Endpoint, files: &TlsFiles, host: &str) -> Result<Endpoint> {
        let authority = files.authority.as_ref().ok_or_else(|| {
            let message = "an encrypted connection needs the certificate of the authority that signed the \
                           server's: set TERRANE_TLS_AUTHORITY to its file";
            Error::invalid(message)
        })?;
        let mut config =
            ClientTlsConfig::new().domain_name(host).ca_certificate(Certificate::from_pem(text(authority)?));
        if let Some(identity) = identity(files)? {
            config = config.identity(identity);
        }
        endpoint.tls_config(config).map_err(|why| refused(&why))
    }

    fn identity(files: &TlsFiles) -> Result<Option<Identity>> {
        match (&files.certificate, &files.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(Identity::from_pem(text(certificate)?, text(key)?))),
            _ => {
                Err(Error::invalid("a certificate needs its key, and a key its certificate: name both files"))
            }
        }
    }

    fn text(path: &Path) -> Result<Vec<u8>> {
        let file = PosixDisk::new().open(path, OpenMode::Read, false)?;
        let len = file.len()?;
        if len > FILE_BYTES_MAX {
            let message = format!(
                "{}: the file has {len} bytes; a file of certificates has at most {FILE_BYTES_MAX}",
                path.display()
            );
            return Err(Error::invalid(message));
        }
        let mut bytes = vec![0; len as usize];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    fn refused(why: &tonic::transport::Error) -> Error {
        use std::error::Error as _;
        let cause = why.source().map_or_else(String::new, |cause| format!(": {cause}"));
        Error::invalid(format!("cannot use the certificates: {why}{cause}"))
    }
}

#[cfg(feature = "tls")]
pub(super) use present::{client, server};
