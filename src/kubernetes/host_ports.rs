//! The ports that a pod binds on its node, also those that the scheduler does not see.
//!
//! A pod with `hostNetwork` binds what its processes bind. No object states that, so it is read from what names a port
//! plainly: declared ports, probes, and flags of the command line that say where to listen. Nothing else is guessed.

use crate::cluster::objects::{Container, PodSpec, PortRef, Probe};

use super::scheduling::node_ports::{declared, lasting};

/// A port that a pod binds on its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoundPort {
    /// The port.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// Address; empty means all.
    pub address: String,
    /// Where it is known from, as a person would say it.
    pub from: String,
    /// Whether it is declared, so that the scheduler sees it.
    pub declared: bool,
}

/// Every port that pods of this spec bind on their node: once each, by the strongest evidence (declared, then an
/// argument, then a probe). Without `hostNetwork` these are the declared host ports.
pub fn bound(spec: &PodSpec) -> Vec<BoundPort> {
    let mut bound: Vec<BoundPort> = Vec::new();
    for port in declared(spec) {
        let known = BoundPort {
            port: u16::try_from(port.port).unwrap_or(0),
            protocol: port.protocol.to_owned(),
            address: normal(port.address).to_owned(),
            from: format!("declared by container {}", port.container),
            declared: true,
        };
        // The same port on two addresses is two declarations.
        if known.port > 0
            && !bound
                .iter()
                .any(|other| (other.port, &other.protocol, &other.address) == (known.port, &known.protocol, &known.address))
        {
            bound.push(known);
        }
    }
    if !spec.host_network {
        return bound;
    }
    let arguments = lasting(spec).flat_map(|container| {
        flags(container).into_iter().filter_map(move |(flag, value)| {
            let (address, port) = listens(&flag, &value)?;
            Some((address, port, format!("argument {flag}={value} of container {}", container.name)))
        })
    });
    let probes = lasting(spec).flat_map(|container| {
        let probes = [
            ("liveness", &container.liveness_probe),
            ("readiness", &container.readiness_probe),
            ("startup", &container.startup_probe),
        ];
        probes.into_iter().filter_map(move |(kind, probe)| {
            let (address, port) = probed(probe.as_ref()?, container)?;
            Some((address, port, format!("{kind} probe of container {}", container.name)))
        })
    });
    for (address, port, from) in arguments.chain(probes) {
        if !bound.iter().any(|known| known.port == port && known.protocol == "TCP") {
            bound.push(BoundPort {
                port,
                protocol: "TCP".to_owned(),
                address,
                from,
                declared: false,
            });
        }
    }
    bound
}

/// The ports of [`bound`] that the scheduler does not see.
pub fn undeclared(spec: &PodSpec) -> Vec<BoundPort> {
    bound(spec).into_iter().filter(|port| !port.declared).collect()
}

/// Whether two processes on one node cannot both bind these: the same port and protocol, on one address or with one of
/// them on all.
pub fn collide(a: &BoundPort, b: &BoundPort) -> bool {
    a.port == b.port && a.protocol == b.protocol && (a.address == b.address || a.address.is_empty() || b.address.is_empty())
}

/// One spelling for each address.
fn normal(host: &str) -> &str {
    match host.trim_start_matches('[').trim_end_matches(']') {
        "0.0.0.0" | "::" | "*" => "",
        "localhost" => "127.0.0.1",
        other => other,
    }
}

/// Where a probe connects to on the pod's own node. A probe of another host says nothing of this one.
fn probed(probe: &Probe, container: &Container) -> Option<(String, u16)> {
    let target = [&probe.http_get, &probe.tcp_socket, &probe.grpc]
        .into_iter()
        .find_map(Option::as_ref)?;
    let host = normal(&target.host);
    if !(host.is_empty() || loopback(host)) {
        return None;
    }
    let port = match target.port.as_ref()? {
        PortRef::Number(port) => *port,
        PortRef::Name(name) => match name.parse() {
            Ok(port) => port,
            Err(_) => container.ports.iter().find(|port| &port.name == name)?.container_port,
        },
    };
    Some((host.to_owned(), u16::try_from(port).ok().filter(|port| *port > 0)?))
}

fn loopback(host: &str) -> bool {
    host == "::1" || host.starts_with("127.")
}

/// The flags of a container's command line with their values: `--flag=value` and `--flag value`.
fn flags(container: &Container) -> Vec<(String, String)> {
    let words: Vec<&str> = container.command.iter().chain(&container.args).map(String::as_str).collect();
    let mut flags = Vec::new();
    for (index, word) in words.iter().enumerate().filter(|(_, word)| word.starts_with('-')) {
        match (word.split_once('='), words.get(index + 1)) {
            (Some((flag, value)), _) => flags.push((flag.to_owned(), value.to_owned())),
            (None, Some(value)) => flags.push(((*word).to_owned(), (*value).to_owned())),
            _ => {}
        }
    }
    flags
}

/// The address and port that a flag tells the process to listen on.
///
/// A flag of that kind ends with `port` and has a number, or ends with `endpoint`, `address`, `addr`, `bind` or
/// `listen` and has `[host]:port`, with a host that is this one. A flag that names another party is none.
fn listens(flag: &str, value: &str) -> Option<(String, u16)> {
    const OTHERS: &[&str] = &[
        "advertise",
        "apiserver",
        "backend",
        "client",
        "collector",
        "connect",
        "database",
        "db",
        "destination",
        "dst",
        "etcd",
        "external",
        "gateway",
        "kubelet",
        "leader",
        "master",
        "node",
        "otel",
        "otlp",
        "peer",
        "proxy",
        "push",
        "redis",
        "remote",
        "s3",
        "server",
        "target",
        "upstream",
    ];
    let flag = flag.trim_start_matches('-').to_ascii_lowercase();
    let words: Vec<&str> = flag.split(['-', '_', '.']).collect();
    if words.iter().any(|word| OTHERS.contains(word))
        && !words
            .iter()
            .any(|word| matches!(*word, "bind" | "listen" | "health" | "healthz" | "metrics"))
    {
        return None;
    }
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    match *words.last()? {
        "port" => Some((String::new(), number(value)?)),
        "endpoint" | "address" | "addr" | "bind" | "listen" => {
            let (host, port) = value.strip_prefix("tcp://").unwrap_or(value).rsplit_once(':')?;
            let bracketed = host.starts_with('[') && host.ends_with(']');
            let host = normal(host);
            let ours = host.is_empty() || loopback(host) || host.parse::<std::net::IpAddr>().is_ok();
            // An IPv6 address without brackets has no port.
            let readable = !host.contains(':') || bracketed;
            (ours && readable).then_some(())?;
            Some((host.to_owned(), number(port)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec(yaml: &str) -> PodSpec {
        serde_yaml::from_str(yaml).unwrap()
    }

    fn short(spec: &PodSpec) -> Vec<String> {
        bound(spec)
            .iter()
            .map(|port| format!("{}:{}/{} {}", port.address, port.port, port.protocol, port.from))
            .collect()
    }

    #[test]
    fn arguments() {
        for (flag, value, expected) in [
            ("--http-endpoint", "localhost:29652", Some(("127.0.0.1", 29652))),
            ("--secure-port", "32443", Some(("", 32443))),
            ("-port", "8080", Some(("", 8080))),
            ("--metrics-bind-address", ":8080", Some(("", 8080))),
            ("--health-probe-bind-address", "0.0.0.0:8081", Some(("", 8081))),
            ("--metrics-bind-address", "[::]:8080", Some(("", 8080))),
            ("--metrics-bind-address", "[::1]:8080", Some(("::1", 8080))),
            ("--bind-address", "::1", None),
            ("--bind-address", "[::1:80", None),
            ("--web.listen-address", "10.0.0.7:9100", Some(("10.0.0.7", 9100))),
            ("--endpoint", "tcp://0.0.0.0:10000", Some(("", 10000))),
            ("--endpoint", "unix:///csi/csi.sock", None),
            ("--csi-address", "/csi/csi.sock", None),
            ("--otlp-endpoint", "localhost:4317", None),
            ("--s3-endpoint", "127.0.0.1:9000", None),
            ("--db-port", "5432", None),
            ("--endpoint", "minio.storage.svc:9000", None),
            ("--etcd-servers", "https://127.0.0.1:2379", None),
            ("--metrics-port", "0", None),
            ("--metrics-port", "70000", None),
            ("--metrics-port", "$(PORT)", None),
            ("--v", "5", None),
            ("--", ":80", None),
        ] {
            assert_eq!(
                listens(flag, value),
                expected.map(|(address, port): (&str, u16)| (address.to_owned(), port)),
                "{flag} {value}"
            );
        }
    }

    const STORAGE: &str = r#"
hostNetwork: true
initContainers: [{name: once, args: [--port=1]}, {name: side, restartPolicy: Always, args: [--port, "2"]}]
containers:
- name: driver
  livenessProbe: {httpGet: {host: localhost, path: /healthz, port: 29652}}
  ports: [{name: web, containerPort: 9000}, {containerPort: 53, protocol: UDP}]
  readinessProbe: {tcpSocket: {port: web}}
- name: liveness
  args: [--csi-address=/csi/csi.sock, --http-endpoint=localhost:29652, --v=2]
  startupProbe: {httpGet: {host: example.com, port: 443}}
- name: other
  command: [serve, --port, "7000", --verbose]
  livenessProbe: {grpc: {port: 7001}}
"#;

    #[test]
    fn a_host_network_pod_binds_what_it_names() {
        assert_eq!(
            short(&spec(STORAGE)),
            [
                ":9000/TCP declared by container driver",
                ":53/UDP declared by container driver",
                ":2/TCP argument --port=2 of container side",
                "127.0.0.1:29652/TCP argument --http-endpoint=localhost:29652 of container liveness",
                ":7000/TCP argument --port=7000 of container other",
                ":7001/TCP liveness probe of container other",
            ]
        );
        assert_eq!(undeclared(&spec(STORAGE)).len(), 4);
    }

    #[test]
    fn any_other_pod_binds_its_host_ports() {
        let pod = spec(
            &STORAGE
                .replace("hostNetwork: true", "")
                .replace("containerPort: 9000", "containerPort: 9000, hostPort: 80, hostIP: 127.0.0.1"),
        );
        assert_eq!(short(&pod), ["127.0.0.1:80/TCP declared by container driver"]);
        assert!(undeclared(&pod).is_empty());
    }

    #[test]
    fn a_probe_alone_tells_a_port() {
        let pod = spec("hostNetwork: true\ncontainers: [{name: a, livenessProbe: {httpGet: {host: localhost, port: 29652}}}]");
        assert_eq!(short(&pod), ["127.0.0.1:29652/TCP liveness probe of container a"]);
    }

    fn port() -> impl Strategy<Value = BoundPort> {
        let address = prop::sample::select(vec!["", "127.0.0.1", "10.0.0.1"]);
        let protocol = prop::sample::select(vec!["TCP", "UDP"]);
        (1_u16..4, address, protocol, any::<bool>()).prop_map(|(port, address, protocol, declared)| BoundPort {
            port,
            protocol: protocol.to_owned(),
            address: address.to_owned(),
            from: String::new(),
            declared,
        })
    }

    proptest! {
        #[test]
        fn collisions_are_mutual(a in port(), b in port()) {
            prop_assert_eq!(collide(&a, &b), collide(&b, &a));
            prop_assert!(collide(&a, &a));
            let everywhere = BoundPort { address: String::new(), ..a.clone() };
            prop_assert_eq!(collide(&everywhere, &b), a.port == b.port && a.protocol == b.protocol);
            let apart = a.address != b.address && !a.address.is_empty() && !b.address.is_empty();
            prop_assert!(!apart || !collide(&a, &b));
        }

        #[test]
        fn never_panics(words in prop::collection::vec("-{0,2}[a-z.-]{0,8}(port|address)?=?[^ ]{0,8}", 0..6)) {
            let container = Container { args: words.into(), ..Default::default() };
            let _ = bound(&PodSpec { host_network: true, containers: vec![container].into(), ..Default::default() });
        }
    }

    #[test]
    fn what_is_no_port_is_none() {
        let pod = spec(
            "hostNetwork: true
containers:
- {name: a, ports: [{containerPort: 80}, {containerPort: 80}, {containerPort: 70000}]}
- {name: b, livenessProbe: {tcpSocket: {port: 0}}}",
        );
        assert_eq!(short(&pod), [":80/TCP declared by container a"]);
    }
}
