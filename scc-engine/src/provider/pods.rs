//! What holds for a pod as a whole.

use picoshift_machinery::FieldError;
use serde_json::json;

use super::{Errors, Provider, sysctls, volumes};
use crate::pod::PodView;

impl Provider<'_> {
    /// Fills in what the pod leaves open.
    pub(super) fn complete_pod(&self, pod: &mut PodView) {
        let security = &mut pod.spec.security_context;
        if security.supplemental_groups.is_none() {
            security.supplemental_groups = self.supplemental_groups.default().map(|group| vec![group]);
        }
        if security.fs_group.is_none() {
            security.fs_group = self.fs_group.default();
        }
        if security.se_linux_options.is_none() {
            security.se_linux_options = self.se_linux.default();
        }
        self.seccomp.complete(pod);
    }

    /// Checks the pod, as it is after that.
    pub(super) fn check_pod(&self, pod: &PodView, path: &str, errors: &mut Errors) {
        let path = &format!("{path}.spec.securityContext");
        let security = &pod.spec.security_context;
        let fs_group: Vec<i64> = security.fs_group.into_iter().collect();
        self.fs_group.check(path, &fs_group, &json!(fs_group), errors);
        let groups = &security.supplemental_groups;
        let listed = groups.as_deref().unwrap_or_default();
        self.supplemental_groups.check(path, listed, &json!(groups), errors);
        self.seccomp.check_pod(pod, errors);
        let label = security.se_linux_options.as_ref();
        self.se_linux.check(&format!("{path}.seLinuxOptions"), label, errors);
        self.check_host_network(pod, path, errors);
        self.check_host_namespaces(pod, path, errors);
        if self.scc.user_namespace_level == "RequirePodLevel" && pod.spec.host_users != Some(false) {
            let (field, shown) = (format!("{path}.hostUsers"), json!(pod.spec.host_users));
            errors.push(FieldError::invalid(field, &shown, "Host Users must be set to false"));
        }
        sysctls::check(self.scc, &security.sysctls, errors);
        volumes::check(self.scc, &pod.spec.volumes, path, errors);
    }

    pub(super) fn check_host_network(&self, pod: &PodView, path: &str, errors: &mut Errors) {
        if pod.spec.host_network && !self.scc.allow_host_network {
            let field = format!("{path}.hostNetwork");
            errors.push(FieldError::invalid(field, &json!(true), "Host network is not allowed to be used"));
        }
    }

    pub(super) fn check_host_namespaces(&self, pod: &PodView, path: &str, errors: &mut Errors) {
        for (used, allowed, field, what) in [
            (pod.spec.host_pid, self.scc.allow_host_pid, "hostPID", "PID"),
            (pod.spec.host_ipc, self.scc.allow_host_ipc, "hostIPC", "IPC"),
        ] {
            if used && !allowed {
                let detail = format!("Host {what} is not allowed to be used");
                errors.push(FieldError::invalid(format!("{path}.{field}"), &json!(true), detail));
            }
        }
    }
}
