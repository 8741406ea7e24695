//! The algebra against a plain set of paths.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

type Path = Vec<PathElement>;
type Model = BTreeSet<Path>;

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        4 => "[ab.]".prop_map(|name| PathElement::field(&name)),
        1 => (0..2_i64).prop_map(|n| PathElement::key(vec![("k".to_owned(), n.into())])),
        1 => "[a<\"]".prop_map(|text| PathElement::Value(std::sync::Arc::new(text.into()))),
        1 => (0..2_i64).prop_map(PathElement::Index),
    ]
}

fn model() -> impl Strategy<Value = Model> {
    proptest::collection::btree_set(proptest::collection::vec(element(), 1..4), 0..12)
}

fn set(model: &Model) -> FieldSet {
    let mut set = FieldSet::default();
    model.iter().for_each(|path| set.insert(path));
    set
}

fn paths(set: &FieldSet) -> Vec<Path> {
    let mut paths = Vec::new();
    set.visit(&mut |path| paths.push(path.to_vec()));
    paths
}

fn as_model(set: &FieldSet) -> Model {
    let paths = paths(set);
    let model: Model = paths.iter().cloned().collect();
    assert_eq!(model.len(), paths.len(), "a path was visited twice");
    model
}

/// JSON of the form that FieldsV1 has, more or less.
fn fields_v1() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![8 => Just(json!({})), 1 => Just(json!(null)), 1 => Just(json!(3))];
    leaf.prop_recursive(4, 30, 4, |inner| {
        let key = prop_oneof![
            Just(".".to_owned()),
            "f:[ab]",
            "v:[0-2](\\.0)?",
            "k:\\{\"[ab]\":[01]\\}",
            "i:[0-9]",
            "[a-z]:x",
            any::<String>()
        ];
        proptest::collection::hash_map(key, inner, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    })
}

proptest! {
    #[test]
    fn does_what_a_set_of_paths_does(a in model(), b in model()) {
        let (left, right) = (set(&a), set(&b));
        prop_assert_eq!(&as_model(&left), &a);
        prop_assert_eq!(left.is_empty(), a.is_empty());
        prop_assert_eq!(left == right, a == b);
        let is = |found: FieldSet, wanted: Model| {
            prop_assert_eq!(&as_model(&found), &wanted);
            // Whatever way a set was made, it is the same tree.
            prop_assert_eq!(found, set(&wanted));
            Ok(())
        };
        is(left.union(&right), a.union(&b).cloned().collect())?;
        is(FieldSet::union_of(vec![left.clone(), right.clone(), left.clone()]), a.union(&b).cloned().collect())?;
        is(left.intersection(&right), a.intersection(&b).cloned().collect())?;
        is(left.difference(&right), a.difference(&b).cloned().collect())?;
        let below = |path: &Path| (1..=path.len()).any(|end| b.contains(&path[..end]));
        is(left.recursive_difference(&right), a.iter().filter(|path| !below(path)).cloned().collect())?;
        let leads_on = |path: &Path| a.iter().any(|other| other.len() > path.len() && other.starts_with(path));
        is(left.leaves(), a.iter().filter(|path| !leads_on(path)).cloned().collect())?;
    }

    #[test]
    fn knows_its_paths(a in model(), path in proptest::collection::vec(element(), 0..4)) {
        let left = set(&a);
        prop_assert_eq!(left.has(&path), a.contains(&path));
        if let Some((first, rest)) = path.split_first() {
            let below = left.below(first).is_some_and(|below| below.has(rest));
            prop_assert_eq!(below, !rest.is_empty() && a.contains(&path));
            prop_assert_eq!(left.has_member(first), a.contains(&path[..1]));
        }
    }

    #[test]
    fn is_read_as_it_was_written(a in model()) {
        let left = set(&a);
        prop_assert_eq!(FieldSet::from_json(&left.to_json()).unwrap(), left);
    }

    #[test]
    fn reads_what_others_write(value in fields_v1()) {
        if let Ok(read) = FieldSet::from_json(&value) {
            prop_assert_eq!(FieldSet::from_json(&read.to_json()).unwrap(), read);
        }
    }
}

#[test]
fn members_of_a_level_come_first() {
    let field = PathElement::field;
    let set = FieldSet::of(&[&[field("a"), field("x")], &[field("b")], &[field("a")]]);
    let shown: Vec<String> = paths(&set).iter().map(|path| crate::path::display(path)).collect();
    assert_eq!(shown, [".a", ".b", ".a.x"]);
    assert_eq!(set.to_json(), json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}}));
}

#[test]
fn what_leads_nowhere_is_a_member() {
    let read = |value: &Value| FieldSet::from_json(value).map(|set| set.to_json());
    assert_eq!(read(&json!({"f:a": {"x:y": {}}, "f:b": null})), Ok(json!({"f:a": {}, "f:b": {}})));
    assert_eq!(read(&json!({"v:1": {}, "v:1.0": {"f:a": {}}})), Ok(json!({"v:1": {".": {}, "f:a": {}}})));
    assert_eq!(read(&json!(null)), Ok(json!({})));
    assert!(
        read(&json!({"f:a": 1})).is_err() && read(&json!([])).is_err() && read(&json!({"oops": {}})).is_err()
    );
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({ "f:a": deep });
    }
    assert_eq!(read(&deep), Err(FieldsError::Depth));
}
