//! One written step as many: a cross product of what it varies.
//!
//! `vary` names fields of a step and the choices for each: `send`, `accept`, `type`, `query` (added to the path), `text` and
//! `with` (merged over the step's own). A choice is a text, or `{LABEL: VALUE}`. The step's name gets the labels of its
//! choices, and so does the name of the watch whose `events` it reads. `{n}` is the number of the combination, `{serial}` that
//! of the step in its topic.

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value};

use crate::case::Step;

/// The fields that can vary, in the order in which they do: the last one fastest.
const FIELDS: [&str; 6] = ["send", "type", "with", "text", "query", "accept"];

/// Every combination of every step; `base` is the object that `with` changes.
///
/// # Errors
/// When a step varies what cannot be, or has two bodies.
pub(crate) fn expand(base: &Value, steps: Vec<Step>) -> anyhow::Result<Vec<Step>> {
    let mut out = Vec::new();
    for mut step in steps {
        let mut choices = std::mem::take(&mut step.vary);
        let mut combinations = vec![(Vec::new(), step.clone())];
        for field in FIELDS {
            let Some(choices) = choices.remove(field) else { continue };
            let mut next = Vec::with_capacity(combinations.len() * choices.len());
            for (labels, step) in combinations {
                for choice in &choices {
                    let (label, value) = chosen(choice).with_context(|| step.name.clone())?;
                    let mut step = step.clone();
                    set(&mut step, field, label, value).with_context(|| step.name.clone())?;
                    let mut labels = labels.clone();
                    labels.push(label.to_owned());
                    next.push((labels, step));
                }
            }
            combinations = next;
        }
        ensure!(choices.is_empty(), "{:?} cannot vary {:?}", step.name, choices.keys());
        for (number, (labels, mut step)) in combinations.into_iter().enumerate() {
            if !labels.is_empty() {
                let labels = labels.join("; ");
                step.name = format!("{} [{labels}]", step.name);
                step.events = step.events.map(|watch| format!("{watch} [{labels}]"));
            }
            step = finish(base, step, &[("{n}", number.to_string()), ("{serial}", out.len().to_string())])?;
            out.push(step);
        }
    }
    Ok(out)
}

fn chosen(choice: &Value) -> anyhow::Result<(&str, &Value)> {
    match choice {
        Value::String(text) => Ok((text, choice)),
        Value::Object(map) if map.len() == 1 => {
            let (label, value) = map.iter().next().context("one choice")?;
            Ok((label, value))
        }
        _ => bail!("a choice is a text or {{LABEL: VALUE}}, not {choice}"),
    }
}

fn set(step: &mut Step, field: &str, label: &str, value: &Value) -> anyhow::Result<()> {
    if field == "with" {
        merge(step.with.get_or_insert_default(), value, true);
        label.clone_into(&mut step.defect);
        return Ok(());
    }
    if field == "send" && step.events.is_some() {
        bail!("it reads events");
    }
    let text = value.as_str().with_context(|| format!("{field} is a text, not {value}"))?.to_owned();
    match field {
        "send" => step.send = text,
        "type" => step.content_type = Some(text),
        "accept" => step.accept = Some(text),
        "text" => {
            step.text = Some(text);
            label.clone_into(&mut step.defect);
        }
        _ if text.is_empty() || step.events.is_some() => {}
        _ => {
            let separator = if step.send.contains('?') { '&' } else { '?' };
            step.send = format!("{}{separator}{text}", step.send);
        }
    }
    Ok(())
}

fn finish(base: &Value, mut step: Step, numbers: &[(&str, String)]) -> anyhow::Result<Step> {
    step.send = numbered(&step.send, numbers);
    step.text = step.text.map(|text| numbered(&text, numbers));
    if let Some(with) = step.with.take() {
        ensure!(step.body.is_none() && step.text.is_none(), "{:?} has two bodies", step.name);
        let mut body = base.clone();
        merge(&mut body, &with, false);
        step.body = Some(body);
    }
    step.body = step.body.map(|body| numbered_value(&body, numbers));
    Ok(step)
}

fn numbered(text: &str, numbers: &[(&str, String)]) -> String {
    numbers.iter().fold(text.to_owned(), |text, (word, number)| text.replace(word, number))
}

fn numbered_value(value: &Value, numbers: &[(&str, String)]) -> Value {
    match value {
        Value::String(text) => numbered(text, numbers).into(),
        Value::Array(items) => items.iter().map(|item| numbered_value(item, numbers)).collect(),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| (key.clone(), numbered_value(value, numbers)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// RFC 7386: objects merge, null removes, anything else replaces. In two patches that become one `nulls` stay.
fn merge(target: &mut Value, patch: &Value, nulls: bool) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() && !nulls {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value, nulls);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn steps(step: Value) -> anyhow::Result<Vec<Step>> {
        expand(&json!({"metadata": {"name": "a{n}"}, "kind": "Route"}), vec![serde_json::from_value(step)?])
    }

    #[test]
    fn a_step_becomes_every_combination() {
        let made = steps(json!({"name": "s", "send": "POST /x?a=1", "vary": {
            "query": ["", "dryRun=All"], "with": [{"good": {}}, {"no kind": {"kind": null}}]}}));
        let made = made.unwrap();
        let names: Vec<&str> = made.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["s [good; ]", "s [good; dryRun=All]", "s [no kind; ]", "s [no kind; dryRun=All]"]);
        assert_eq!(made[1].send, "POST /x?a=1&dryRun=All");
        assert_eq!(made[0].body, Some(json!({"metadata": {"name": "a0"}, "kind": "Route"})));
        assert_eq!(made[3].body, Some(json!({"metadata": {"name": "a3"}})));
    }

    #[test]
    fn what_cannot_vary_is_refused() {
        assert!(steps(json!({"name": "s", "send": "GET /x", "vary": {"nosuch": ["a"]}})).is_err());
        assert!(steps(json!({"name": "s", "send": "GET /x", "vary": {"accept": [1]}})).is_err());
        assert!(steps(json!({"name": "s", "send": "PUT /x", "with": {}, "text": "x"})).is_err());
        let watch = steps(json!({"name": "e", "events": "w", "vary": {"query": ["q"]}})).unwrap();
        assert_eq!(watch[0].events.as_deref(), Some("w [q]"));
    }
}
