//! One certificate authority for the API server and for every simulated process.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::kubelet::node_address;

/// Issues a certificate for whatever name a client asks for.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "control plane test");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate"))
    }

    /// The authority's own certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for `names` and its key.
    pub fn issue(&self, names: &[&str]) -> (rcgen::Certificate, KeyPair) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("valid names");
        params.distinguished_name.push(DnType::CommonName, "simulated process");
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.0).expect("a certificate"), key)
    }

    /// Settings of a TLS server that presents a certificate for the name it is called by.
    pub fn server_config(self: &Arc<Self>) -> Arc<rustls::ServerConfig> {
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        Arc::new(config)
    }
}

impl ResolvesServerCert for Authority {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // Called by an address, it is not told by which: any node's.
        let addresses: Vec<String> = (0..16).map(|index| node_address(index).to_string()).collect();
        let any = addresses.iter().map(String::as_str).chain(["localhost"]);
        let names: Vec<&str> = hello.server_name().map_or_else(|| any.collect(), |name| vec![name]);
        let (certificate, key) = self.issue(&names);
        let key = ring::sign::any_supported_type(&PrivateKeyDer::Pkcs8(key.serialize_der().into())).ok()?;
        Some(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
    }
}
