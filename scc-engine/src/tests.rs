//! What the recorded decisions do not show.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    Cluster, Explanation, Fit, Namespace, Operation, Provider, Request, Scc, Subject, Verdict, admission,
    defaults, explain, order, validation,
};

fn deployed() -> Vec<Scc> {
    let text = include_str!("../../deploy/scc/sccs.yaml");
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    objects
        .into_iter()
        .map(|object| {
            let mut scc = object.as_object().unwrap().clone();
            defaults::complete(&mut scc);
            Scc::from_value(&json!(scc)).unwrap()
        })
        .collect()
}

fn namespace() -> Namespace {
    let annotations = [
        (crate::namespace::UID_RANGE, "1000660000/10000"),
        (crate::namespace::SUPPLEMENTAL_GROUPS, "1000660000/10000"),
        (crate::namespace::MCS, "s0:c26,c5"),
    ];
    let owned = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Namespace { name: "demo".to_owned(), annotations: BTreeMap::from(owned) }
}

fn with_request<T>(pod: &Value, ask: impl FnOnce(&Cluster<'_>, &Request<'_>) -> T) -> T {
    let sccs = deployed();
    let may_use = |subject: &Subject, scc: &str| {
        subject.groups.iter().any(|group| group == "system:authenticated") && scc.starts_with("restricted-v")
    };
    let cluster = Cluster { sccs: &sccs, may_use: &may_use };
    let user = Subject { name: "dev".to_owned(), groups: vec!["system:authenticated".to_owned()] };
    let namespace = namespace();
    let request = Request {
        operation: Operation::Create,
        subresource: "",
        name: "",
        namespace: &namespace,
        user: &user,
        pod,
        old: None,
    };
    ask(&cluster, &request)
}

#[test]
fn the_deployed_sccs_are_valid_and_in_their_order() {
    let mut sccs = deployed();
    for scc in &sccs {
        assert_eq!(validation::validate(scc), [], "{}", scc.name());
    }
    sccs.sort_by(order::compare);
    let names: Vec<_> = sccs.iter().map(|scc| (scc.name().to_owned(), order::score(scc))).collect();
    let expected = [
        ("anyuid", 154_950),
        ("restricted-v2", 132_010),
        ("restricted-v3", 132_010),
        ("restricted", 134_800),
        ("nested-container", 135_020),
        ("nonroot-v2", 142_010),
        ("nonroot", 144_800),
        ("hostmount-anyuid", 254_950),
        ("hostmount-anyuid-v2", 284_950),
        ("hostnetwork-v2", 1_332_010),
        ("hostnetwork", 1_334_800),
        ("hostaccess", 1_434_800),
        ("privileged", 3_089_000),
    ];
    assert_eq!(names, expected.map(|(name, score)| (name.to_owned(), score)));
}

/// A simulator before this one filled in fsGroup alone, refused nobody and asked nobody.
#[test]
fn a_plain_pod_gets_all_that_openshift_gives_it() {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"x-unknown": 1, "containers": [{"name": "c", "image": "i"}]}});
    let Verdict::Admitted(admitted) = with_request(&pod, admission::admit).unwrap() else {
        panic!("ignored")
    };
    assert_eq!(
        admitted.pod,
        json!({
            "metadata": {"name": "p", "annotations": {
                "openshift.io/scc": "restricted-v2",
                "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
                "security.openshift.io/validated-scc-subject-type": "user",
            }},
            "spec": {
                "x-unknown": 1,
                "securityContext": {
                    "fsGroup": 1_000_660_000,
                    "seLinuxOptions": {"level": "s0:c26,c5"},
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [{"name": "c", "image": "i", "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                    "runAsNonRoot": true,
                    "runAsUser": 1_000_660_000,
                }}],
            },
        })
    );
}

#[test]
fn says_of_each_why_not() {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "securityContext": {"runAsUser": 0}}]}});
    let all = with_request(&pod, explain).unwrap();
    assert_eq!(all.len(), 13);
    let of = |name: &str| -> &Explanation { all.iter().find(|one| one.scc == name).unwrap() };
    assert!(matches!(
        of("anyuid"),
        Explanation { usable_by: None, fit: Fit::Yes, chosen: false, rank: (10, _), .. }
    ));
    let Fit::No(errors) = &of("restricted-v2").fit else { panic!("it fits") };
    assert_eq!(
        errors[0].to_string(),
        "provider restricted-v2: .containers[0].runAsUser: Invalid value: 0: must be in the ranges: [1000660000, 1000669999]"
    );
    let plain = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}});
    let all = with_request(&plain, explain).unwrap();
    let chosen: Vec<_> = all.iter().filter(|one| one.chosen).map(|one| one.scc.as_str()).collect();
    assert_eq!(chosen, ["restricted-v2"]);
}

/// Upstream goes through all containers for each of them.
#[test]
fn many_host_ports_cost_little() {
    let container =
        |number: usize| json!({"name": format!("c{number}"), "ports": [{"hostPort": 1 + number % 60_000}]});
    let containers: Vec<Value> = (0..20_000).map(container).collect();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": containers}});
    let refusal = with_request(&pod, admission::admit).unwrap_err();
    assert!(refusal.reason.len() < 1_000_000, "{}", refusal.reason.len());
}

/// Upstream shows all groups in the error about each.
#[test]
fn many_groups_cost_little() {
    let groups: Vec<usize> = (0..200_000).collect();
    let mut scc = deployed().into_iter().find(|scc| scc.name() == "restricted-v3").unwrap();
    scc.user_namespace_level.clear();
    let pod =
        json!({"spec": {"securityContext": {"supplementalGroups": groups}, "containers": [{"name": "c"}]}});
    let namespace = namespace();
    let refused = Provider::new(&scc, &namespace).unwrap().assign(&pod).unwrap_err();
    assert!(refused.to_string().len() < 3_000_000);
}

#[test]
fn names_every_error_of_an_scc() {
    let scc = json!({
        "metadata": {"name": "x"},
        "priority": -1,
        "runAsUser": {"type": "Any", "uid": -1},
        "seLinuxContext": {},
        "fsGroup": {"type": "Other", "ranges": [{"min": -1, "max": 5}, {"min": 7, "max": 6}]},
        "supplementalGroups": {"type": "RunAsAny", "ranges": [{"min": -3, "max": -2}]},
        "requiredDropCapabilities": ["KILL"],
        "allowedCapabilities": ["KILL", "*"],
        "defaultAddCapabilities": ["KILL"],
        "allowPrivilegeEscalation": false,
        "defaultAllowPrivilegeEscalation": true,
        "volumes": ["none", "secret"],
        "allowedFlexVolumes": [{"driver": "a"}],
        "allowedUnsafeSysctls": ["*", "kernel.x", ""],
        "forbiddenSysctls": ["kernel.*", "UPPER"],
    });
    let errors = validation::validate(&Scc::from_value(&scc).unwrap());
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let pattern = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?\\.)*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]";
    assert_eq!(
        texts,
        [
            "priority: Invalid value: -1: priority cannot be negative",
            "runAsUser.type: Invalid value: \"Any\": invalid strategy type.  Valid values are MustRunAs, MustRunAsNonRoot, MustRunAsRange, RunAsAny",
            "runAsUser.uid: Invalid value: -1: uid cannot be negative",
            "seLinuxContext.type: Invalid value: \"\": invalid strategy type.  Valid values are MustRunAs, RunAsAny",
            "fsGroup.type: Unsupported value: \"Other\": supported values: \"MustRunAs\", \"RunAsAny\"",
            "fsGroup.ranges[0].min: Invalid value: -1: min cannot be negative",
            "fsGroup.ranges[1].min: Invalid value: {\"min\":7,\"max\":6}: min cannot be greater than max",
            "supplementalGroups.ranges[0].min: Invalid value: -3: min cannot be negative",
            "supplementalGroups.ranges[0].max: Invalid value: -2: max cannot be negative",
            "defaultAddCapabilities: Invalid value: \"KILL\": capability is listed in defaultAddCapabilities and requiredDropCapabilities",
            "allowedCapabilities: Invalid value: \"KILL\": capability is listed in allowedCapabilities and requiredDropCapabilities",
            "requiredDropCapabilities: Invalid value: [\"KILL\"]: required capabilities must be empty when all capabilities are allowed by a wildcard",
            "defaultAllowPrivilegeEscalation: Invalid value: true: Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true",
            "volumes: Invalid value: [\"none\",\"secret\"]: if 'none' is specified, no other values are allowed",
            "allowedFlexVolumes: Invalid value: [{\"driver\":\"a\"}]: volumes does not include 'flexVolume' or '*', so no flex volumes are allowed",
            "allowedUnsafeSysctls[2]: Invalid value: \"\": empty sysctl not allowed",
            "allowedUnsafeSysctls.items: Forbidden: if '*' is present, must not specify other sysctls",
            &format!(
                "forbiddenSysctls[1]: Invalid value: \"UPPER\": must have at most 253 characters and match regex {pattern}"
            ),
            "forbiddenSysctls[0]: Invalid value: \"kernel.*\": sysctl overlaps with *",
            "forbiddenSysctls[1]: Invalid value: \"UPPER\": sysctl overlaps with *",
            "allowedUnsafeSysctls[1]: Invalid value: \"kernel.x\": sysctl overlaps with kernel.*",
        ]
    );
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        "[a-z/]{0,6}".prop_map(Value::from),
    ];
    let fields = prop::sample::select(vec![
        "securityContext",
        "capabilities",
        "add",
        "ports",
        "hostPort",
        "name",
        "seLinuxOptions",
        "runAsUser",
        "volumes",
        "seccompProfile",
        "type",
        "annotations",
        "containers",
        "supplementalGroups",
        "projected",
        "sources",
    ]);
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(fields.clone(), inner, 0..5).prop_map(|map| map
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Value>()),
        ]
    })
}

proptest! {
    /// Whatever comes, it is admitted or refused; and what is admitted is found fit when it is looked at again.
    #[test]
    fn any_json_is_judged(metadata in json_value(), spec in json_value()) {
        let pod = json!({"metadata": metadata, "spec": spec});
        if let Ok(Verdict::Admitted(admitted)) = with_request(&pod, admission::admit) {
            prop_assert!(with_request(&admitted.pod, admission::validate).is_ok());
            let mut patched = pod.clone();
            json_patch::patch(&mut patched, &admitted.patch).unwrap();
            prop_assert_eq!(patched, admitted.pod);
        }
    }
}
