//! Routes of any shape: nothing panics, and presenting takes nothing away.

use picoshift_machinery::Object;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::{context, create, route, strategy, update};
use crate::registry::strategy::{Computed, Planned, Stored, Strategy as _};
use crate::store::Key;

/// JSON of any shape, with the names that routes use.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("host"),
        Just("path"),
        Just("to"),
        Just("tls"),
        Just("weight"),
        Just("name"),
        Just("port"),
        Just("targetPort"),
        Just("ingress"),
        Just("conditions"),
        Just("httpHeaders"),
        Just("actions"),
        Just("request"),
        Just("action"),
        Just("set"),
        Just("value"),
        Just("alternateBackends"),
        Just("termination"),
        Just("subdomain"),
        Just("wildcardPolicy"),
        Just("externalCertificate"),
        Just("finalizers"),
        Just("annotations"),
        Just("routerName"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        prop_oneof![Just("passthrough"), Just("edge"), Just("Subdomain"), Just("default"), Just("Set")]
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| { Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()) }),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_that_is_json_makes_it_panic(
        metadata in any_json(), spec in any_json(), status in any_json(), before in any_json(),
    ) {
        let strategy = strategy(&["secrets"]);
        let cx = context("demo", "create");
        let mut object = Object::new("route.openshift.io/v1", "Route");
        object.0.insert("metadata".to_owned(), metadata);
        object.0.insert("spec".to_owned(), spec);
        object.0.insert("status".to_owned(), status);
        let mut old = object.clone();
        old.0.insert("spec".to_owned(), before);
        strategy.strip(&mut old);
        strategy.set_defaults(&mut old);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let _ = update(&strategy, &cx, "", object.clone(), &old).await;
            let _ = update(&strategy, &cx, "status", object.clone(), &old).await;
            let _ = create(&strategy, &cx, object.clone()).await;
        });
        let key = Key::from("routes.route.openshift.io/demo/web");
        let stored = Stored { object: old, computed: Computed::default() };
        let write = Planned { key: &key, old: Some(&stored), new: Some(&object), computed: None, create_revision: Some(1), touch: false };
        let computed = strategy.plan(write, "t").computed;
        strategy.committed(write, 2);
        strategy.row(&strategy.present(&Stored { object, computed }));
    }

    #[test]
    fn what_is_presented_strips_to_what_is_stored(spec in any_json(), others in 0_usize..3) {
        let strategy = strategy(&[]);
        let mut object = route(&spec);
        let list: Vec<Value> = (0..others).map(|i| json!({"routerName": format!("r{i}")})).collect();
        object.0.insert("status".to_owned(), json!({"ingress": list}));
        strategy.set_defaults(&mut object);
        let key = Key::from("routes.route.openshift.io/demo/web");
        let write = Planned { key: &key, old: None, new: Some(&object), computed: None, create_revision: None, touch: false };
        let computed = strategy.plan(write, "t").computed;
        let stored = Stored { object, computed };
        let mut shown = strategy.present(&stored);
        prop_assert_eq!(shown.at(&["status", "ingress"]).and_then(Value::as_array).map(Vec::len), Some(others + 1));
        strategy.strip(&mut shown);
        prop_assert_eq!(shown, stored.object);
    }
}
