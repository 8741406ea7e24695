//! W3C WebDriver, as far as tests of pages need it: commands in JSON over plain HTTP to the driver on this machine.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

/// How long an element may take to appear.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(50);
/// The key by which the protocol marks an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Keys that are no characters.
pub mod key {
    /// Leads to the next field.
    pub const TAB: char = '\u{e004}';
    /// Presses the button.
    pub const ENTER: char = '\u{e007}';
}

/// How elements are found.
#[derive(Debug, Clone, Copy)]
pub enum By<'a> {
    /// By a selector of CSS.
    Css(&'a str),
    /// By an expression of `XPath`.
    XPath(&'a str),
}

/// A session of a browser, with the page that it shows.
#[derive(Debug, Clone)]
pub struct Page {
    client: Client<HttpConnector, Full<Bytes>>,
    session: String,
}

/// Something on a page.
#[derive(Debug, Clone)]
pub struct Element {
    page: Page,
    id: String,
}

impl Page {
    /// Opens a session with the driver at a port.
    ///
    /// # Errors
    /// When the browser does not start.
    pub async fn open(port: u16, capabilities: &Value) -> anyhow::Result<Self> {
        let driver = format!("http://127.0.0.1:{port}/session");
        let mut page = Self { client: Client::builder(TokioExecutor::new()).build_http(), session: driver };
        let body = json!({"capabilities": {"alwaysMatch": capabilities}});
        let value = page.command(Method::POST, "", &body).await?;
        let id = value["sessionId"].as_str().context("no session")?;
        page.session = format!("{}/{id}", page.session);
        Ok(page)
    }

    /// One command; gives its value.
    async fn command(&self, method: Method, path: &str, body: &Value) -> anyhow::Result<Value> {
        let content = if method == Method::POST { serde_json::to_vec(body)? } else { Vec::new() };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.session))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(content)))?;
        let answer = self.client.request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        let mut answer: Value = serde_json::from_slice(&body).context("the driver does not speak JSON")?;
        let value = answer["value"].take();
        if !status.is_success() {
            bail!("{path}: {}: {}", value["error"], value["message"]);
        }
        Ok(value)
    }

    /// Goes to a page and waits until it is there.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn goto(&self, url: &str) -> anyhow::Result<()> {
        self.command(Method::POST, "/url", &json!({"url": url})).await.map(drop)
    }

    /// Sets the window's size.
    ///
    /// # Errors
    /// When there is none.
    pub async fn resize(&self, width: u32, height: u32) -> anyhow::Result<()> {
        let size = json!({"x": 0, "y": 0, "width": width, "height": height});
        self.command(Method::POST, "/window/rect", &size).await.map(drop)
    }

    /// The page's title.
    ///
    /// # Errors
    /// When there is no page.
    pub async fn title(&self) -> anyhow::Result<String> {
        Ok(self.command(Method::GET, "/title", &Value::Null).await?.as_str().unwrap_or_default().to_owned())
    }

    /// A picture, as PNG.
    ///
    /// # Errors
    /// When there is no page.
    pub async fn screenshot(&self) -> anyhow::Result<Vec<u8>> {
        let text = self.command(Method::GET, "/screenshot", &Value::Null).await?;
        Ok(base64::engine::general_purpose::STANDARD.decode(text.as_str().context("no picture")?)?)
    }

    /// What a script returns.
    ///
    /// # Errors
    /// When it fails.
    pub async fn execute(&self, script: &str) -> anyhow::Result<Value> {
        self.command(Method::POST, "/execute/sync", &json!({"script": script, "args": []})).await
    }

    /// Everything that is found now.
    ///
    /// # Errors
    /// When the expression is wrong.
    pub async fn find_all(&self, by: By<'_>) -> anyhow::Result<Vec<Element>> {
        let (using, value) = match by {
            By::Css(selector) => ("css selector", selector),
            By::XPath(expression) => ("xpath", expression),
        };
        let found = self.command(Method::POST, "/elements", &json!({"using": using, "value": value})).await?;
        found.as_array().into_iter().flatten().map(|element| self.element(element)).collect()
    }

    /// The first that is found, which may take a while to appear.
    ///
    /// # Errors
    /// When nothing appears.
    pub async fn find(&self, by: By<'_>) -> anyhow::Result<Element> {
        let given_up = Instant::now() + PATIENCE;
        loop {
            if let Some(first) = self.find_all(by).await?.into_iter().next() {
                return Ok(first);
            }
            if Instant::now() > given_up {
                bail!("there is no {by:?} on {}", self.title().await?);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What has the focus.
    ///
    /// # Errors
    /// When nothing has.
    pub async fn active_element(&self) -> anyhow::Result<Element> {
        self.element(&self.command(Method::GET, "/element/active", &Value::Null).await?)
    }

    /// Presses keys one after the other, wherever the focus is.
    ///
    /// # Errors
    /// When there is no page.
    pub async fn press(&self, keys: &str) -> anyhow::Result<()> {
        let strokes = keys.chars().flat_map(|key| {
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        });
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": strokes.collect::<Vec<_>>()});
        self.command(Method::POST, "/actions", &json!({"actions": [keyboard]})).await.map(drop)
    }

    /// Ends the session and the browser.
    ///
    /// # Errors
    /// When it has ended already.
    pub async fn quit(&self) -> anyhow::Result<()> {
        self.command(Method::DELETE, "", &Value::Null).await.map(drop)
    }

    fn element(&self, value: &Value) -> anyhow::Result<Element> {
        let id = value[ELEMENT].as_str().context("no element")?.to_owned();
        Ok(Element { page: self.clone(), id })
    }
}

impl Element {
    async fn command(&self, method: Method, what: &str, body: &Value) -> anyhow::Result<Value> {
        self.page.command(method, &format!("/element/{}/{what}", self.id), body).await
    }

    /// What it shows.
    ///
    /// # Errors
    /// When it is gone.
    pub async fn text(&self) -> anyhow::Result<String> {
        Ok(self.command(Method::GET, "text", &Value::Null).await?.as_str().unwrap_or_default().to_owned())
    }

    /// An attribute, if it has that.
    ///
    /// # Errors
    /// When it is gone.
    pub async fn attribute(&self, name: &str) -> anyhow::Result<Option<String>> {
        let value = self.command(Method::GET, &format!("attribute/{name}"), &Value::Null).await?;
        Ok(value.as_str().map(str::to_owned))
    }

    /// How high it is, in pixels.
    ///
    /// # Errors
    /// When it is gone.
    pub async fn height(&self) -> anyhow::Result<f64> {
        let rect = self.command(Method::GET, "rect", &Value::Null).await?;
        rect["height"].as_f64().context("no height")
    }

    /// Types into it, after what it holds is cleared.
    ///
    /// # Errors
    /// When it is gone or no field.
    pub async fn fill(&self, text: &str) -> anyhow::Result<()> {
        self.command(Method::POST, "clear", &json!({})).await?;
        self.command(Method::POST, "value", &json!({"text": text})).await.map(drop)
    }

    /// Clicks it.
    ///
    /// # Errors
    /// When it is gone or hidden.
    pub async fn click(&self) -> anyhow::Result<()> {
        self.command(Method::POST, "click", &json!({})).await.map(drop)
    }
}
