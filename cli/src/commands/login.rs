//! `login`: gets a token for a user, as `oc login` does, and makes a context of it.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};
use serde_json::json;

use super::{lock_state, say, user};
use crate::args::LoginArgs;
use crate::components::Component;
use crate::failure::Failure;
use crate::kubeconfig::{Access, NAME, user_file};
use crate::oauth;
use crate::paths::Paths;
use crate::progress::Progress;
use crate::settings::Settings;

/// Runs `login`.
pub(crate) async fn run(paths: &Paths, args: LoginArgs) -> Result<()> {
    let port = Settings::load(paths)?.port(Component::PicoshiftShim).ok_or_else(super::nothing_runs)?;
    let name = match args.user {
        Some(user) => user,
        None => ask()?,
    };
    let password = user::given(&args.password, &name)?;
    let token = oauth::login(port, &name, &password, paths).await?;

    let path = user_file::default_path()
        .ok_or_else(|| Failure::new("there is no home directory for a kubeconfig", "set KUBECONFIG"))?;
    let server = format!("https://127.0.0.1:{port}");
    let mut access = Access::new(&server, "admin", paths)?;
    access.user = json!({"token": token});
    let context = format!("{NAME}/{name}");
    let _lock = lock_state(paths, &Progress::new()).await?;
    let mut settings = Settings::load(paths)?;
    settings.kubeconfig =
        Some(user_file::merge(&path, &context, &access, settings.kubeconfig.as_ref()).await?);
    settings.save(paths)?;
    say(&format!(
        "{name} is logged in; context {context} in {} is current. Next:\n  kubectl get projects\n  \
         kubectl config use-context {NAME}   # to be the administrator again\n",
        path.display()
    ))
}

fn ask() -> Result<String> {
    let mut terminal = std::io::stderr();
    if !std::io::stdin().is_terminal() {
        let remedy = "name the user: `picoshift login USER --password-stdin`";
        return Err(Failure::new("there is no user name, and no terminal to ask at", remedy).into());
    }
    write!(terminal, "Username: ").and_then(|()| terminal.flush()).context("cannot ask for the user name")?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("cannot read the user name")?;
    Ok(line.trim().to_owned())
}
