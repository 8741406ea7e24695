//! What OpenShift's kube-apiserver answers itself: the OAuth discovery document and the way to the console. Both come from
//! ConfigMaps in `openshift-config-managed`.

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Method, Response, StatusCode};
use percent_encoding::percent_decode_str;
use picoshift_machinery::body::{Body, empty, full};
use picoshift_machinery::plain;

const OAUTH_METADATA: &str = "/.well-known/oauth-authorization-server";
const CONSOLE: &str = "/console";

/// The documents now.
#[derive(Debug, Default)]
pub struct Documents {
    oauth_metadata: ArcSwapOption<Bytes>,
    console: ArcSwapOption<String>,
    /// Whether anybody tells us; else the paths are kube-apiserver's.
    followed: bool,
}

impl Documents {
    /// None yet. `followed` says that somebody will tell.
    #[must_use]
    pub fn new(followed: bool) -> Self {
        Self { followed, ..Self::default() }
    }

    /// The discovery document; `None` where there is no OAuth server.
    pub fn set_oauth_metadata(&self, document: Option<String>) {
        self.oauth_metadata.store(document.map(|text| Bytes::from(text).into()));
    }

    /// Where the console is.
    pub fn set_console(&self, url: Option<String>) {
        self.console.store(url.filter(|url| !url.is_empty()).map(Into::into));
    }

    /// The answer to a request, if it is for one of the documents. `None` leaves it to kube-apiserver.
    #[must_use]
    pub fn answer(&self, method: &Method, path: &str) -> Option<Response<Body>> {
        if !self.followed || !matches!(path.as_bytes().get(..2), Some([b'/', b'.' | b'c' | b'%'])) {
            return None;
        }
        let path = percent_decode_str(path).decode_utf8().ok()?;
        if path == OAUTH_METADATA {
            let document = self.oauth_metadata.load_full()?;
            let mut response = Response::new(full((*document).clone()));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            return Some(response);
        }
        path.starts_with(CONSOLE).then(|| self.console(method))
    }

    fn console(&self, method: &Method) -> Response<Body> {
        let url = self.console.load_full();
        let location =
            url.as_deref().and_then(|url| HeaderValue::from_str(url).ok().map(|value| (url, value)));
        let Some((url, location)) = location else {
            let why = "redirection failed: console URL not found";
            return plain::plain_error(StatusCode::INTERNAL_SERVER_ERROR, why);
        };
        let mut response = Response::new(empty());
        *response.status_mut() = StatusCode::FOUND;
        response.headers_mut().insert(LOCATION, location);
        if matches!(*method, Method::GET | Method::HEAD) {
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, html);
        }
        if *method == Method::GET {
            let url = url.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let url = url.replace('"', "&#34;").replace('\'', "&#39;");
            *response.body_mut() = full(format!("<a href=\"{url}\">Found</a>.\n\n"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_served_while_they_are_there() {
        let documents = Documents::new(true);
        let code =
            |path: &str| documents.answer(&Method::GET, path).map(|response| response.status().as_u16());
        assert_eq!(code(OAUTH_METADATA), None);
        assert_eq!(code("/console"), Some(500));
        documents.set_oauth_metadata(Some("{}".to_owned()));
        documents.set_console(Some("https://console.apps.test".to_owned()));
        assert_eq!(
            (code(OAUTH_METADATA), code("/%2ewell-known/oauth-authorization-server")),
            (Some(200), Some(200))
        );
        assert_eq!(
            (code("/console"), code("/console/x"), code("/consoles")),
            (Some(302), Some(302), Some(302))
        );
        let others = ["/", "/.well-known/openid-configuration", "/apis/console.openshift.io/v1", "/c", ""];
        assert!(others.iter().all(|path| code(path).is_none()));
        let response = documents.answer(&Method::POST, "/console").unwrap();
        assert_eq!(response.headers()[LOCATION], "https://console.apps.test");
        documents.set_oauth_metadata(None);
        assert_eq!(code(OAUTH_METADATA), None);
        assert!(Documents::new(false).answer(&Method::GET, "/console").is_none());
    }
}
