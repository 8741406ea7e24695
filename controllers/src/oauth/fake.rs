//! A kube-apiserver of a few lines, for tests and fuzzing: objects by path, with what a server adds to them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::api::{Api, ApiError};

/// The server.
#[derive(Default)]
pub(crate) struct Fake {
    objects: Mutex<BTreeMap<String, Value>>,
    /// What was asked, in order.
    pub(crate) log: Mutex<Vec<(Method, String)>>,
    /// Service-account tokens, and whose they are.
    pub(crate) tokens: Mutex<BTreeMap<String, String>>,
    /// Answers to the next writes, instead of doing them.
    pub(crate) failures: Mutex<Vec<u16>>,
    /// When objects are made.
    pub(crate) now: Mutex<String>,
}

impl Fake {
    /// A server with objects.
    #[cfg(test)]
    pub(crate) fn with(objects: &[(&str, Value)]) -> Self {
        let fake = Self::default();
        for (path, object) in objects {
            fake.put(path, object.clone());
        }
        fake
    }

    pub(crate) fn put(&self, path: &str, mut object: Value) {
        let mut objects = self.objects.lock();
        let metadata = &mut object["metadata"];
        if metadata["uid"].is_null() {
            metadata["uid"] = format!("uid{}", objects.len()).into();
        }
        if metadata["name"].is_null() {
            metadata["name"] = path.rsplit('/').next().unwrap_or_default().replace("%3A", ":").into();
        }
        if metadata["creationTimestamp"].is_null() {
            let now = self.now.lock().clone();
            let now = if now.is_empty() { "2026-01-01T00:00:00Z".to_owned() } else { now };
            metadata["creationTimestamp"] = now.into();
        }
        objects.insert(path.to_owned(), object);
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.objects.lock().get(path).cloned()
    }

    pub(crate) fn remove(&self, path: &str) {
        self.objects.lock().remove(path);
    }

    /// All objects of a resource.
    #[cfg(test)]
    pub(crate) fn all(&self, resource: &str) -> Vec<Value> {
        let objects = self.objects.lock();
        let part = format!("/{resource}/");
        objects.iter().filter(|(path, _)| path.contains(&part)).map(|(_, object)| object.clone()).collect()
    }
}

fn error(code: u16, reason: &str) -> ApiError {
    ApiError { code, reason: reason.to_owned(), message: reason.to_owned() }
}

#[async_trait]
impl Api for Fake {
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        self.log.lock().push((method.clone(), path.to_owned()));
        if path.ends_with("/tokenreviews") {
            let token = body.map_or("", |body| body["spec"]["token"].as_str().unwrap_or_default());
            return Ok(match self.tokens.lock().get(token) {
                Some(user) => json!({"status": {"authenticated": true, "user": {"username": user}}}),
                None => json!({"status": {"authenticated": false}}),
            });
        }
        if method != Method::GET
            && let Some(code) = self.failures.lock().pop()
        {
            return Err(error(code, "made to fail"));
        }
        let body = body.cloned().unwrap_or_default();
        match method {
            Method::GET => self.get(path).ok_or_else(|| error(404, "NotFound")),
            Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap_or("generated").to_owned();
                let path = format!("{path}/{}", super::api::segment(&name));
                if self.get(&path).is_some() {
                    return Err(error(409, "AlreadyExists"));
                }
                self.put(&path, body);
                self.get(&path).ok_or_else(|| error(500, ""))
            }
            Method::PUT => {
                self.put(path, body.clone());
                Ok(body)
            }
            Method::DELETE => {
                let object = self.get(path).ok_or_else(|| error(404, "NotFound"))?;
                if body["preconditions"]["uid"] != object["metadata"]["uid"] {
                    return Err(error(409, "Conflict"));
                }
                self.remove(path);
                Ok(object)
            }
            _ => Err(error(405, "MethodNotAllowed")),
        }
    }
}
