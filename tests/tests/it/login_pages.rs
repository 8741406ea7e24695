//! The pages by which people log in, in a real browser: with the keyboard alone, on a phone without scripts, readable.

use anyhow::{Context as _, ensure};
use picoshift_tests::ControlPlane;
use picoshift_tests::browser::{Browser, DESKTOP, PHONE, Window};
use picoshift_tests::web_driver::{By, key};

/// Contrast of text that people with weak eyes can read: WCAG 2.2, success criterion 1.4.3.
const CONTRAST: f64 = 4.5;
/// Smallest height of what a finger has to hit: WCAG 2.2, success criterion 2.5.8.
const TARGET_PIXELS: f64 = 24.0;

async fn issuer(plane: &ControlPlane) -> anyhow::Result<String> {
    let anybody = plane.anonymous()?;
    let metadata = anybody.api.get("/.well-known/oauth-authorization-server").await?.expect_code(200)?;
    Ok(metadata["issuer"].as_str().context("no issuer")?.to_owned())
}

/// How many presses of Tab lead past everything on a page.
const TABS: usize = 10;

/// Asks for a token; the page of providers is answered by the keyboard.
async fn ask_for_a_token(browser: &Browser, issuer: &str) -> anyhow::Result<()> {
    browser.page.goto(&format!("{issuer}/oauth/token/request")).await?;
    assert_accessible(browser).await?;
    for _ in 0..TABS {
        browser.page.press(&key::TAB.to_string()).await?;
        if browser.page.active_element().await?.text().await? == "picoshift" {
            browser.page.press(&key::ENTER.to_string()).await?;
            browser.page.find(By::Css("[name=password]")).await?;
            return Ok(());
        }
    }
    anyhow::bail!("Tab does not lead to the provider")
}

async fn log_in(browser: &Browser, user: &str, password: &str) -> anyhow::Result<()> {
    for (field, text) in [("username", user), ("password", password)] {
        browser.page.find(By::Css(&format!("[name={field}]"))).await?.fill(text).await?;
    }
    browser.page.find(By::Css("button[type=submit]")).await?.click().await
}

/// The token on the page that shows it.
async fn shown_token(browser: &Browser) -> anyhow::Result<String> {
    let text = browser.page.find(By::Css("body")).await?.text().await?;
    let token = text.split_whitespace().find(|word| word.starts_with("sha256~"));
    Ok(token.with_context(|| format!("no token on the page: {text}"))?.to_owned())
}

/// Fails unless every field has a label, the page a language, a title and one first heading, and nothing is wider than the window.
async fn assert_accessible(browser: &Browser) -> anyhow::Result<()> {
    let page = &browser.page;
    let html = page.find(By::Css("html")).await?;
    ensure!(html.attribute("lang").await?.is_some_and(|lang| lang.starts_with("en")), "no language");
    ensure!(!page.title().await?.trim().is_empty(), "no title");
    ensure!(page.find_all(By::Css("h1")).await?.len() == 1, "a page has one first heading");
    for field in page.find_all(By::Css("input:not([type=hidden]), textarea, select")).await? {
        let id = field.attribute("id").await?.context("a field without an id has no label")?;
        let label = page.find(By::Css(&format!("label[for='{id}']"))).await?;
        ensure!(!label.text().await?.trim().is_empty(), "the label of {id} is empty");
    }
    for button in page.find_all(By::Css("button, input[type=submit]")).await? {
        let height = button.height().await?;
        ensure!(height >= TARGET_PIXELS, "a button is only {height} pixels high");
    }
    Ok(())
}

/// The lowest contrast of any text to what is behind it, and how much wider than the window the page is.
async fn look(browser: &Browser) -> anyhow::Result<(f64, f64)> {
    let script = r"
        const channel = value => { const c = value / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
        const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
        const parts = colour => colour.match(/[\d.]+/g).map(Number);
        const behind = node => {
            for (let at = node; at; at = at.parentElement) {
                const found = parts(getComputedStyle(at).backgroundColor);
                if (found.length < 4 || found[3] === 1) return found;
            }
            return [255, 255, 255];
        };
        let lowest = 21;
        for (const node of document.querySelectorAll('body, body *')) {
            const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
            if (!own || !node.getClientRects().length) continue;
            const [one, other] = [parts(getComputedStyle(node).color), behind(node)].map(luminance);
            lowest = Math.min(lowest, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05));
        }
        return [lowest, document.documentElement.scrollWidth - document.documentElement.clientWidth];";
    let answer = browser.page.execute(script).await?;
    let values: Vec<f64> = serde_json::from_value(answer)?;
    let [contrast, wider] = values.try_into().map_err(|values| anyhow::anyhow!("{values:?}"))?;
    Ok((contrast, wider))
}

#[tokio::test]
async fn a_person_logs_in_by_the_keyboard_and_gets_a_token() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let browser = Browser::start(DESKTOP).await?;
    let issuer = issuer(&plane).await?;
    browser.page.goto(&format!("{issuer}/oauth/token/request")).await?;
    browser.picture("providers").await?;
    ask_for_a_token(&browser, &issuer).await?;
    assert_accessible(&browser).await?;
    let (contrast, _) = look(&browser).await?;
    ensure!(contrast >= CONTRAST, "the contrast of some text is {contrast:.2}");
    browser.picture("login").await?;

    // The user name has the focus already.
    browser.page.press(&format!("user1{}user1{}", key::TAB, key::ENTER)).await?;
    browser.page.find(By::XPath("//button[contains(., 'Display Token')]")).await?;
    assert_accessible(&browser).await?;
    browser.picture("token-request").await?;
    browser.page.press(&key::TAB.to_string()).await?;
    browser.page.press(&key::ENTER.to_string()).await?;
    browser.page.find(By::XPath("//*[contains(., 'Your API token is')]")).await?;
    assert_accessible(&browser).await?;
    let (contrast, wider) = look(&browser).await?;
    ensure!(contrast >= CONTRAST && wider <= 0.0, "contrast {contrast:.2}, {wider} pixels too wide");
    browser.picture("token").await?;

    let token = shown_token(&browser).await?;
    let answer = plane
        .anonymous()?
        .api
        .with_header("Authorization", &format!("Bearer {token}"))?
        .get("/apis/user.openshift.io/v1/users/~")
        .await?;
    assert_eq!(answer.expect_code(200)?["metadata"]["name"], "user1");
    browser.close().await
}

#[tokio::test]
async fn a_wrong_password_is_told_and_forgiven() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let browser = Browser::start(DESKTOP).await?;
    ask_for_a_token(&browser, &issuer(&plane).await?).await?;
    log_in(&browser, "user1", "wrong").await?;
    let said = "//*[@role='alert'][contains(., 'Invalid login or password. Please try again.')]";
    browser.page.find(By::XPath(said)).await?;
    assert_accessible(&browser).await?;
    let (contrast, _) = look(&browser).await?;
    ensure!(contrast >= CONTRAST, "the contrast of some text is {contrast:.2}");
    browser.picture("login-refused").await?;
    log_in(&browser, "user1", "user1").await?;
    browser.page.find(By::XPath("//button[contains(., 'Display Token')]")).await?;
    browser.close().await
}

#[tokio::test]
async fn a_phone_without_scripts_will_do() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let issuer = issuer(&plane).await?;
    let browser = Browser::start(PHONE).await?;
    ask_for_a_token(&browser, &issuer).await?;
    browser.picture("login-phone").await?;
    log_in(&browser, "user1", "user1").await?;
    browser.page.find(By::XPath("//button[contains(., 'Display Token')]")).await?.click().await?;
    shown_token(&browser).await?;
    browser.picture("token-phone").await?;
    browser.close().await?;

    // How wide it is can be asked only where scripts run.
    let browser = Browser::start(Window { scripts: true, ..PHONE }).await?;
    ask_for_a_token(&browser, &issuer).await?;
    let (_, wider) = look(&browser).await?;
    ensure!(wider <= 0.0, "the page is {wider} pixels wider than a phone");
    browser.close().await
}
