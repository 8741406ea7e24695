//! Where two normalised answers differ.

use serde_json::Value;

use crate::case::{Answer, Answers, Topic};

/// One place at which an answer of ours differs from the real server's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    /// `TOPIC/STEP`.
    pub(crate) case: String,
    /// `code`, `header NAME`, `body.FIELD…`, `event N.FIELD…` or `revision`.
    pub(crate) at: String,
    /// What the real server has there.
    pub(crate) real: Option<Value>,
    /// What ours has there.
    pub(crate) ours: Option<Value>,
}

/// The differences of every case of a topic.
pub(crate) fn topic(topic: &Topic, real: &Answers, ours: &Answers) -> Vec<Difference> {
    let mut differences = Vec::new();
    for step in topic.steps.iter().filter(|step| !step.setup) {
        let case = format!("{}/{}", topic.name, step.name);
        match (real.get(&step.name), ours.get(&step.name)) {
            (Some(real), Some(ours)) => answer(&case, real, ours, &mut differences),
            (real, ours) => differences.push(Difference {
                case,
                at: "answer".to_owned(),
                real: real.map(|_| "one".into()),
                ours: ours.map(|_| "one".into()),
            }),
        }
    }
    differences
}

fn answer(case: &str, real: &Answer, ours: &Answer, out: &mut Vec<Difference>) {
    let mut differ = |at: String, real: Option<&Value>, ours: Option<&Value>| {
        out.push(Difference { case: case.to_owned(), at, real: real.cloned(), ours: ours.cloned() });
    };
    if real.code != ours.code {
        differ("code".to_owned(), Some(&real.code.into()), Some(&ours.code.into()));
    }
    let mut names: Vec<&String> = real.headers.keys().chain(ours.headers.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let values = |answer: &Answer| answer.headers.get(name).map(|values| Value::from(values.clone()));
        let (real, ours) = (values(real), values(ours));
        if real != ours {
            differ(format!("header {name}"), real.as_ref(), ours.as_ref());
        }
    }
    value("body", Some(&real.body), Some(&ours.body), &mut differ);
    for index in 0..real.events.len().max(ours.events.len()) {
        value(&format!("event {index}"), real.events.get(index), ours.events.get(index), &mut differ);
    }
}

fn value(
    at: &str,
    real: Option<&Value>,
    ours: Option<&Value>,
    differ: &mut impl FnMut(String, Option<&Value>, Option<&Value>),
) {
    match (real, ours) {
        (Some(Value::Object(real)), Some(Value::Object(ours))) => {
            let mut keys: Vec<&String> = real.keys().chain(ours.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                value(&format!("{at}.{key}"), real.get(key), ours.get(key), differ);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(ours))) => {
            for index in 0..real.len().max(ours.len()) {
                value(&format!("{at}[{index}]"), real.get(index), ours.get(index), differ);
            }
        }
        (real, ours) if real == ours => {}
        (real, ours) => differ(at.to_owned(), real, ours),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differences(real: &Value, ours: &Value) -> Vec<String> {
        let answer_of = |value: &Value| serde_json::from_value(value.clone()).unwrap();
        let mut out = Vec::new();
        answer("t/s", &answer_of(real), &answer_of(ours), &mut out);
        out.into_iter().map(|difference| difference.at).collect()
    }

    #[test]
    fn every_part_of_an_answer_is_compared() {
        let real = json!({"code": 200, "headers": {"warning": ["w"]}, "body": {"a": [1, 2], "b": null}, "events": [{"type": "ADDED"}]});
        assert!(differences(&real, &real).is_empty());
        let ours = json!({"code": 201, "body": {"a": [1], "c": 1}, "events": [{"type": "DELETED"}, {"type": "ADDED"}]});
        let expected = ["code", "header warning", "body.a[1]", "body.b", "body.c", "event 0.type", "event 1"];
        assert_eq!(differences(&real, &ours), expected);
    }
}
