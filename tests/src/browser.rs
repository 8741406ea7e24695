//! A real browser, headless: Chromium, told what to do through its driver.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::web_driver::Page;

/// What the driver prints when it listens.
const STARTED: &str = "was started successfully on port ";

/// How a browser is set up.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Whether pages may run scripts.
    pub scripts: bool,
}

/// A desktop's window.
pub const DESKTOP: Window = Window { width: 1280, height: 900, scripts: true };
/// A small phone's, on which pages may run no scripts.
pub const PHONE: Window = Window { width: 360, height: 740, scripts: false };

/// A browser with an empty profile; it ends with this value.
#[derive(Debug)]
pub struct Browser {
    /// To look at pages with.
    pub page: Page,
    _driver: Child,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts one.
    ///
    /// # Errors
    /// When Chromium or its driver is missing or does not start: `hack/browser` installs both.
    pub async fn start(window: Window) -> anyhow::Result<Self> {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("cannot run chromedriver: hack/browser installs it")?;
        let mut lines = BufReader::new(driver.stdout.take().context("no output")?).lines();
        let port = loop {
            let Some(line) = lines.next_line().await? else { bail!("chromedriver ended") };
            if let Some((_, port)) = line.split_once(STARTED) {
                break port.trim_end_matches('.').parse::<u16>()?;
            }
        };
        // Its pipe must not fill up.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let profile = tempfile::tempdir()?;
        let page = Page::open(port, &capabilities(window, profile.path()))
            .await
            .context("Chromium does not start")?;
        page.resize(window.width, window.height).await?;
        Ok(Self { page, _driver: driver, _profile: profile })
    }

    /// Keeps a picture of the page in `target/screenshots`, for people to look at.
    ///
    /// # Errors
    /// When it cannot be taken or written.
    pub async fn picture(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("screenshots");
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{name}.png"));
        std::fs::write(&path, self.page.screenshot().await?)?;
        Ok(path)
    }

    /// Ends it in an orderly way.
    ///
    /// # Errors
    /// When it is gone already.
    pub async fn close(self) -> anyhow::Result<()> {
        self.page.quit().await
    }
}

/// Everything that a browser does by itself on the network is off. Its own store of authorities is nobody's to change here:
/// what certificates are good for is tried by other clients.
fn capabilities(window: Window, profile: &Path) -> Value {
    let scripts = if window.scripts { 1 } else { 2 };
    let options = json!({
        "args": [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--lang=en",
            format!("--user-data-dir={}", profile.display()),
        ],
        "prefs": {"profile.managed_default_content_settings.javascript": scripts},
    });
    json!({"browserName": "chrome", "acceptInsecureCerts": true, "goog:chromeOptions": options})
}
