//! The Pod Security level that a namespace enforces (`k8s.io/pod-security-admission/policy`).
//!
//! A running pod may have been created before the label was set, or under an exemption that only the API server's
//! configuration names. So what meets the level passes, and of what does not nobody can tell here.

use super::Obstacle;
use crate::cluster::objects::{Container, PodSpec, SecurityContext, SecurityProfile, Volume};
use crate::cluster::snapshot::Snapshot;

/// Label of a namespace with the level that it enforces.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

/// Capabilities that `baseline` lets be added.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Kernel parameters that every version of `baseline` lets be set.
const SYSCTLS: [&str; 5] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
];

/// What may stand against a pod with this spec.
pub(super) fn obstacle(snapshot: &Snapshot, namespace: &str, spec: &PodSpec) -> Option<Obstacle> {
    // Whether the namespace could be read is asked for where it matters first: whether it is being deleted.
    let level = snapshot.namespaces.find("", namespace)?.metadata.labels.get(ENFORCE)?;
    let violation = match level.as_str() {
        "privileged" => None,
        "baseline" => baseline(spec),
        // One that cannot be read counts as the strictest.
        _ => baseline(spec).or_else(|| restricted(spec)),
    }?;
    Some(Obstacle::Undecided {
        what: format!("whether Pod Security admits new pods of namespace {namespace}"),
        why: format!("the namespace enforces {level}, against which its template has {violation}, unless it is exempt"),
    })
}

fn containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.init_containers.iter().chain(&spec.containers)
}

/// The contexts of the pod and of its containers.
fn contexts(spec: &PodSpec) -> impl Iterator<Item = &SecurityContext> {
    std::iter::once(&*spec.security_context).chain(containers(spec).map(|container| &*container.security_context))
}

fn confined(profile: &SecurityProfile) -> bool {
    matches!(profile.kind.as_str(), "RuntimeDefault" | "Localhost")
}

/// What of a spec `baseline` forbids.
fn baseline(spec: &PodSpec) -> Option<&'static str> {
    let probed_elsewhere = |container: &Container| {
        let probes = [&container.liveness_probe, &container.readiness_probe, &container.startup_probe];
        probes.into_iter().flatten().any(|probe| {
            let targets = [&probe.http_get, &probe.tcp_socket];
            targets.into_iter().flatten().any(|target| !target.host.is_empty())
        })
    };
    let any = |forbidden: &dyn Fn(&SecurityContext) -> bool| contexts(spec).any(forbidden);
    let rules: [(&'static str, bool); 12] = [
        ("host namespaces", spec.host_network || spec.host_pid || spec.host_ipc),
        ("a hostPath volume", spec.volumes.iter().any(|volume| volume.host_path.is_some())),
        (
            "a host port",
            containers(spec).any(|container| container.ports.iter().any(|port| port.host_port != 0)),
        ),
        ("a probe of a host", containers(spec).any(probed_elsewhere)),
        ("privileged", any(&|context| context.privileged)),
        (
            "capabilities",
            any(&|context| context.capabilities.add.iter().any(|name| !CAPABILITIES.contains(&name.as_str()))),
        ),
        ("procMount", any(&|context| !matches!(context.proc_mount.as_str(), "" | "Default"))),
        (
            "seccompProfile",
            any(&|context| context.seccomp_profile.as_ref().is_some_and(|profile| !confined(profile))),
        ),
        (
            "appArmorProfile",
            any(&|context| context.app_armor_profile.as_ref().is_some_and(|profile| !confined(profile))),
        ),
        (
            "seLinuxOptions",
            any(&|context| {
                let options = &context.se_linux_options;
                let kinds = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
                !options.user.is_empty() || !options.role.is_empty() || !kinds.contains(&options.kind.as_str())
            }),
        ),
        (
            "sysctls",
            any(&|context| context.sysctls.iter().any(|sysctl| !SYSCTLS.contains(&sysctl.name.as_str()))),
        ),
        ("hostProcess", any(&|context| context.windows_options.host_process)),
    ];
    rules.iter().find(|(_, forbidden)| *forbidden).map(|(what, _)| *what)
}

/// What of a spec that meets `baseline` is forbidden by `restricted`, or required and missing.
fn restricted(spec: &PodSpec) -> Option<&'static str> {
    let pod = &spec.security_context;
    let all = |holds: &dyn Fn(&SecurityContext) -> bool| containers(spec).all(|container| holds(&container.security_context));
    let rules: [(&'static str, bool); 6] = [
        ("a volume of a forbidden type", spec.volumes.iter().any(|volume| !plain(volume))),
        (
            "allowPrivilegeEscalation",
            !all(&|context| context.allow_privilege_escalation == Some(false)),
        ),
        (
            "runAsNonRoot",
            !all(&|context| context.run_as_non_root.or(pod.run_as_non_root) == Some(true)),
        ),
        ("runAsUser", contexts(spec).any(|context| context.run_as_user == Some(0))),
        (
            "seccompProfile",
            !all(&|context| {
                context
                    .seccomp_profile
                    .as_ref()
                    .or(pod.seccomp_profile.as_ref())
                    .is_some_and(confined)
            }),
        ),
        (
            "capabilities",
            !all(&|context| {
                let capabilities = &context.capabilities;
                capabilities.drop.iter().any(|name| name == "ALL") && capabilities.add.iter().all(|name| name == "NET_BIND_SERVICE")
            }),
        ),
    ];
    rules.iter().find(|(_, forbidden)| *forbidden).map(|(what, _)| *what)
}

/// Whether a volume is of a type that `restricted` allows, as far as its type is known here.
fn plain(volume: &Volume) -> bool {
    volume.host_path.is_none()
        && volume.nfs.is_none()
        && volume.gce_persistent_disk.is_none()
        && volume.aws_elastic_block_store.is_none()
        && volume.azure_disk.is_none()
        && volume.cinder.is_none()
        && volume.portworx_volume.is_none()
        && volume.rbd.is_none()
        && volume.iscsi.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::testing::snapshot;

    fn said(level: &str, spec: &str) -> String {
        let snapshot = snapshot(&format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: d, labels: {{pod-security.kubernetes.io/enforce: {level}}}}}"
        ));
        match obstacle(&snapshot, "d", &serde_yaml::from_str(spec).unwrap()) {
            None => "fine".to_owned(),
            Some(Obstacle::Undecided { why, .. }) => {
                let (_, found) = why.split_once("template has ").unwrap();
                found.trim_end_matches(", unless it is exempt").to_owned()
            }
            Some(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn baseline_forbids() {
        assert_eq!(said("baseline", "{containers: [{name: c, ports: [{containerPort: 80}]}]}"), "fine");
        for (spec, what) in [
            ("hostNetwork: true", "host namespaces"),
            ("hostPID: true", "host namespaces"),
            ("hostIPC: true", "host namespaces"),
            ("volumes: [{name: v, hostPath: {path: /}}]", "a hostPath volume"),
            ("containers: [{name: c, ports: [{hostPort: 80}]}]", "a host port"),
            (
                "containers: [{name: c, livenessProbe: {httpGet: {host: localhost, port: 80}}}]",
                "a probe of a host",
            ),
            ("initContainers: [{name: c, securityContext: {privileged: true}}]", "privileged"),
            (
                "containers: [{name: c, securityContext: {capabilities: {add: [CHOWN, NET_ADMIN]}}}]",
                "capabilities",
            ),
            ("containers: [{name: c, securityContext: {procMount: Unmasked}}]", "procMount"),
            ("securityContext: {seccompProfile: {type: Unconfined}}", "seccompProfile"),
            ("securityContext: {appArmorProfile: {type: Unconfined}}", "appArmorProfile"),
            ("securityContext: {seLinuxOptions: {type: spc_t}}", "seLinuxOptions"),
            ("securityContext: {seLinuxOptions: {role: r}}", "seLinuxOptions"),
            ("securityContext: {sysctls: [{name: kernel.msgmax}]}", "sysctls"),
            ("securityContext: {windowsOptions: {hostProcess: true}}", "hostProcess"),
        ] {
            assert_eq!(said("baseline", &format!("{{{spec}}}")), what, "{spec}");
            assert_eq!(said("restricted", &format!("{{{spec}}}")), what, "{spec}");
            assert_eq!(said("privileged", &format!("{{{spec}}}")), "fine", "{spec}");
        }
        let allowed = "securityContext: {seccompProfile: {type: Localhost}, sysctls: [{name: net.ipv4.tcp_syncookies}], seLinuxOptions: {type: container_t}}";
        assert_eq!(said("baseline", &format!("{{{allowed}}}")), "fine");
    }

    #[test]
    fn restricted_requires() {
        let container = "allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}";
        let pod = "runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}";
        let spec = |pod: &str, container: &str, more: &str| {
            format!("{{securityContext: {{{pod}}}, {more}containers: [{{name: c, securityContext: {{{container}}}}}]}}")
        };
        assert_eq!(said("restricted", &spec(pod, container, "")), "fine");
        assert_eq!(said("restricted", &spec("", &format!("{pod}, {container}"), "")), "fine");
        assert_eq!(
            said("restricted", &spec(pod, container, "volumes: [{name: v, emptyDir: {}}], ")),
            "fine"
        );
        assert_eq!(said("baseline", &spec("", "", "")), "fine");
        for (what, pod, container, more) in [
            ("allowPrivilegeEscalation", pod, "capabilities: {drop: [ALL]}", ""),
            ("runAsNonRoot", "seccompProfile: {type: RuntimeDefault}", container, ""),
            ("runAsUser", &format!("{pod}, runAsUser: 0"), container, ""),
            ("seccompProfile", "runAsNonRoot: true", container, ""),
            ("capabilities", pod, "allowPrivilegeEscalation: false", ""),
            (
                "capabilities",
                pod,
                "allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [CHOWN]}",
                "",
            ),
            (
                "a volume of a forbidden type",
                pod,
                container,
                "volumes: [{name: v, nfs: {server: x, path: /}}], ",
            ),
        ] {
            assert_eq!(said("restricted", &spec(pod, container, more)), what);
            assert_eq!(said("unheard-of", &spec(pod, container, more)), what);
        }
    }
}
