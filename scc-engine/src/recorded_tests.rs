//! What the real library decided, replayed (`hack/scc-decisions`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Cluster, Namespace, Operation, Request, Scc, Subject, Verdict, admission, defaults};

const RECORDED: &str = include_str!("../fixtures/decisions.json");

#[derive(Deserialize)]
struct Document {
    worlds: BTreeMap<String, World>,
    defaults: Vec<Defaulted>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct World {
    sccs: Vec<Value>,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    grants: Vec<Grant>,
}

#[derive(Deserialize)]
struct Grant {
    subject: String,
    #[serde(default)]
    namespace: String,
    scc: String,
}

#[derive(Deserialize)]
struct Defaulted {
    given: Value,
    completed: Value,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    world: String,
    phase: String,
    operation: String,
    #[serde(default)]
    subresource: String,
    namespace: String,
    user: String,
    groups: Vec<String>,
    pod: Value,
    #[serde(default)]
    old: Value,
    #[serde(default)]
    error: String,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    audit: BTreeMap<String, String>,
}

fn document() -> Document {
    serde_json::from_str(RECORDED).unwrap()
}

/// Runs a case; the pod, or the whole message.
fn decide(
    case: &Case,
    world: &World,
    sccs: &[Scc],
) -> (Result<Option<Value>, String>, BTreeMap<String, String>) {
    let may_use = |subject: &Subject, scc: &str| {
        world.grants.iter().any(|grant| {
            (grant.subject == subject.name || subject.groups.contains(&grant.subject))
                && (grant.namespace.is_empty() || grant.namespace == case.namespace)
                && (grant.scc == scc || grant.scc == "*")
        })
    };
    let cluster = Cluster { sccs, may_use: &may_use };
    let annotations = world.namespaces.get(&case.namespace).cloned().unwrap_or_default();
    let namespace = Namespace { name: case.namespace.clone(), annotations };
    let user = Subject { name: case.user.clone(), groups: case.groups.clone() };
    if case.operation == "CONNECT" {
        let answer = admission::connect(&cluster, &case.subresource, &namespace, &user, &case.pod);
        return (answer.map(|()| None).map_err(|refusal| refusal.to_string()), BTreeMap::new());
    }
    let request = Request {
        operation: if case.operation == "CREATE" { Operation::Create } else { Operation::Update },
        subresource: &case.subresource,
        name: case.pod["metadata"]["name"].as_str().unwrap_or_default(),
        namespace: &namespace,
        user: &user,
        pod: &case.pod,
        old: Some(&case.old).filter(|old| !old.is_null()),
    };
    let verdict = match case.phase.as_str() {
        "admit" => admission::admit(&cluster, &request),
        _ => admission::validate(&cluster, &request),
    };
    match verdict {
        Ok(Verdict::Ignored) => (Ok(None), BTreeMap::new()),
        Ok(Verdict::Admitted(admitted)) => {
            let mut patched = case.pod.clone();
            json_patch::patch(&mut patched, &admitted.patch).unwrap();
            assert_eq!(patched, admitted.pod, "{}: the patch", case.name);
            (Ok(Some(admitted.pod)), admitted.audit)
        }
        Err(refusal) => (Err(refusal.to_string()), refusal.audit),
    }
}

#[test]
fn decides_as_the_library() {
    let document = document();
    assert!(document.cases.len() > 300, "{}", document.cases.len());
    let mut wrong = Vec::new();
    for case in &document.cases {
        let world = &document.worlds[&case.world];
        let sccs: Vec<Scc> = world.sccs.iter().map(|scc| Scc::from_value(scc).unwrap()).collect();
        let (answer, audit) = decide(case, world, &sccs);
        let expected = if case.error.is_empty() {
            Ok(Some(case.result.clone()).filter(|result| !result.is_null() && *result != case.pod))
        } else {
            Err(case.error.clone())
        };
        // What is ignored and what is found fit are one here: the pod is left as it is.
        let answer = answer.map(|pod| pod.filter(|pod| *pod != case.pod));
        if answer != expected {
            wrong.push(format!("{}\n  is       {answer:?}\n  expected {expected:?}", case.name));
        } else if audit != case.audit {
            wrong.push(format!("{}: audit\n  is       {audit:?}\n  expected {:?}", case.name, case.audit));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), document.cases.len(), wrong.join("\n"));
}

#[test]
fn completes_sccs_as_the_library() {
    let document = document();
    assert!(document.defaults.len() > 8);
    for Defaulted { given, completed } in document.defaults {
        let mut scc = given.as_object().unwrap().clone();
        defaults::complete(&mut scc);
        let got = json!(scc);
        for field in
            ["fsGroup", "supplementalGroups", "users", "groups", "volumes", "allowPrivilegeEscalation"]
        {
            assert_eq!(got[field], completed[field], "{field} of {given}");
        }
    }
}

/// The library was asked with the SCCs that a cluster gets.
#[test]
fn the_recorded_sccs_are_those_of_deploy() {
    let document = document();
    let recorded: BTreeMap<&str, Scc> = document.worlds["default"]
        .sccs
        .iter()
        .map(|scc| (scc["metadata"]["name"].as_str().unwrap(), Scc::from_value(scc).unwrap()))
        .collect();
    let text = include_str!("../../deploy/scc/sccs.yaml");
    let deployed: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    assert_eq!(deployed.len(), 13);
    for object in deployed {
        let mut scc = object.as_object().unwrap().clone();
        defaults::complete(&mut scc);
        let scc = Scc::from_value(&json!(scc)).unwrap();
        assert_eq!(scc, recorded[scc.name()]);
    }
}
