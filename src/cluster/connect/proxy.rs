//! The proxy that the environment names.

use std::net::IpAddr;

use super::Environment;

/// The proxy that the environment names for a server, as Go's `golang.org/x/net/http/httpproxy` picks it.
pub(super) fn environment_proxy(server: &str, environment: &Environment) -> Option<String> {
    let uri: http::Uri = server.parse().ok()?;
    let secure = uri.scheme_str() == Some("https");
    let proxy = if secure {
        environment.https_proxy.clone()
    } else {
        environment.http_proxy.clone()
    }?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let address: Option<IpAddr> = host.parse().ok();
    let local = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    let exempt = environment.no_proxy.as_deref().is_some_and(|list| {
        list.split(',')
            .map(|entry| entry.trim().to_ascii_lowercase())
            .any(|entry| exempts(&entry, &host, port, address))
    });
    if local || exempt {
        return None;
    }
    Some(if proxy.contains("://") { proxy } else { format!("http://{proxy}") })
}

/// Whether an entry of `NO_PROXY` means a host.
fn exempts(entry: &str, host: &str, port: u16, address: Option<IpAddr>) -> bool {
    if entry.is_empty() || entry == "*" {
        return entry == "*";
    }
    if let Some((network, bits)) = entry.split_once('/')
        && let (Ok(network), Ok(bits), Some(address)) = (network.parse::<IpAddr>(), bits.parse::<u32>(), address)
    {
        return match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                bits <= 32 && (u32::from(network) ^ u32::from(address)).checked_shr(32 - bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                bits <= 128 && (u128::from(network) ^ u128::from(address)).checked_shr(128 - bits).unwrap_or(0) == 0
            }
            _ => false,
        };
    }
    if let Ok(exact) = entry.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return address == Some(exact);
    }
    let (name, wanted) = match entry.rsplit_once(':').map(|(name, port)| (name, port.parse::<u16>())) {
        Some((name, Ok(wanted))) => (name.trim_start_matches('[').trim_end_matches(']'), Some(wanted)),
        _ => (entry, None),
    };
    if wanted.is_some_and(|wanted| wanted != port) {
        return false;
    }
    let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
    match name.strip_prefix('.') {
        Some(_) => host.ends_with(name),
        None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
    }
}
