//! What holds for each container. Where it says nothing, the pod's word holds.

use picoshift_machinery::FieldError;
use serde_json::json;

use super::{Errors, Provider, capabilities, seccomp};
use crate::pod::{Container, PodView, SECCOMP_CONTAINER};

/// A host port that a container names: where, and which.
struct HostPort {
    container: String,
    port: i32,
}

impl Provider<'_> {
    /// Fills in what the containers leave open, and checks them.
    pub(super) fn assign_containers(&self, pod: &mut PodView, path: &str, errors: &mut Errors) {
        let ports = if self.scc.allow_host_ports { Vec::new() } else { host_ports(pod) };
        let lists = pod.spec.lists().map(|(list, containers)| (list, containers.to_vec()));
        for (number, (list, containers)) in lists.into_iter().enumerate() {
            for (index, mut container) in containers.into_iter().enumerate() {
                self.complete_container(pod, &mut container);
                self.check_container(pod, &container, &format!("{path}.{list}[{index}]"), &ports, errors);
                if let Some(place) = pod.spec.lists_mut()[number].1.get_mut(index) {
                    *place = container;
                }
            }
        }
    }

    fn complete_container(&self, pod: &PodView, container: &mut Container) {
        let of_pod = &pod.spec.security_context;
        let own = &mut container.security_context;
        if own.run_as_user.or(of_pod.run_as_user).is_none() {
            own.run_as_user = self.user.default();
        }
        if own.se_linux_options.is_none() && of_pod.se_linux_options.is_none() {
            own.se_linux_options = self.se_linux.default();
        }
        if own.run_as_non_root.or(of_pod.run_as_non_root).is_none() {
            // So that the kubelet looks at the image's user, and the restricted level of Pod Security is met.
            let non_root = match own.run_as_user.or(of_pod.run_as_user) {
                None => self.scc.run_as_user.r#type == "MustRunAsNonRoot",
                Some(user) => user > 0,
            };
            own.run_as_non_root = non_root.then_some(true);
        }
        own.capabilities = capabilities::complete(self.scc, own.capabilities.as_ref());
        if self.scc.read_only_root_filesystem && own.read_only_root_filesystem.is_none() {
            own.read_only_root_filesystem = Some(true);
        }
        if let Some(name) = pod.metadata.annotations.get(&format!("{SECCOMP_CONTAINER}{}", container.name)) {
            own.seccomp_profile = seccomp::profile(name);
        }
        // Kubernetes allows privileged containers nothing else than to gain privileges.
        let gains = own.privileged == Some(true)
            || own
                .capabilities
                .iter()
                .flat_map(|own| own.add.iter().flatten())
                .any(|name| name == "CAP_SYS_ADMIN");
        if own.allow_privilege_escalation.is_none() {
            let default = self.scc.default_allow_privilege_escalation.filter(|_| !gains);
            let forbidden = self.scc.allow_privilege_escalation.filter(|allowed| !allowed);
            own.allow_privilege_escalation = default.or(forbidden);
        }
    }

    fn check_container(
        &self,
        pod: &PodView,
        container: &Container,
        path: &str,
        ports: &[HostPort],
        errors: &mut Errors,
    ) {
        if errors.are_full() {
            return;
        }
        let (of_pod, own) = (&pod.spec.security_context, &container.security_context);
        let non_root = own.run_as_non_root.or(of_pod.run_as_non_root);
        self.user.check(path, non_root, own.run_as_user.or(of_pod.run_as_user), errors);
        let label = own.se_linux_options.as_ref().or(of_pod.se_linux_options.as_ref());
        self.se_linux.check(&format!("{path}.seLinuxOptions"), label, errors);
        self.seccomp.check_container(pod, container, errors);
        if own.privileged == Some(true) && !self.scc.allow_privileged_container {
            let field = format!("{path}.privileged");
            errors.push(FieldError::invalid(field, &json!(true), "Privileged containers are not allowed"));
        }
        capabilities::check(self.scc, path, own.capabilities.as_ref(), errors);
        self.check_host_network(pod, path, errors);
        // Upstream looks at all containers for each of them; so the paths are long, and the errors many.
        for HostPort { container, port } in ports {
            if errors.are_full() {
                return;
            }
            let field = format!("{path}.{container}.hostPort");
            errors.push(FieldError::invalid(field, &json!(port), "Host ports are not allowed to be used"));
        }
        self.check_host_namespaces(pod, path, errors);
        if self.scc.read_only_root_filesystem && own.read_only_root_filesystem != Some(true) {
            let detail = match own.read_only_root_filesystem {
                None => "ReadOnlyRootFilesystem may not be nil and must be set to true",
                Some(_) => "ReadOnlyRootFilesystem must be set to true",
            };
            let (field, shown) =
                (format!("{path}.readOnlyRootFilesystem"), json!(own.read_only_root_filesystem));
            errors.push(FieldError::invalid(field, &shown, detail));
        }
        if self.scc.allow_privilege_escalation == Some(false) && own.allow_privilege_escalation != Some(false)
        {
            let (field, shown) =
                (format!("{path}.allowPrivilegeEscalation"), json!(own.allow_privilege_escalation));
            let detail = "Allowing privilege escalation for containers is not allowed";
            errors.push(FieldError::invalid(field, &shown, detail));
        }
    }
}

fn host_ports(pod: &PodView) -> Vec<HostPort> {
    let mut found = Vec::new();
    for (list, containers) in pod.spec.lists() {
        for (index, container) in containers.iter().enumerate() {
            for port in container.ports.iter().filter(|port| port.host_port > 0) {
                found.push(HostPort { container: format!("{list}[{index}]"), port: port.host_port });
            }
        }
    }
    found
}
