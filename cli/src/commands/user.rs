//! `user`: adds, lists and deletes those who can log in.

use std::io::{IsTerminal, Read};

use anyhow::{Context, Result};
use kube::Client;

use super::say;
use crate::args::{Output, PasswordArgs, UserCommand};
use crate::components::Component;
use crate::failure::Failure;
use crate::guard;
use crate::health::client_for;
use crate::paths::Paths;
use crate::settings::Settings;
use crate::users::CLUSTER_ADMINS;
use crate::users::directory::{Directory, Entry};

/// Longest password that is read; the file's hashes look at 72 bytes.
const PASSWORD_LIMIT: u64 = 4096;

/// Runs `user`.
pub(crate) async fn run(paths: &Paths, command: UserCommand) -> Result<()> {
    let client = client(paths)?;
    if !matches!(command, UserCommand::List { .. }) {
        guard::ours_or_nobodys(&client).await?;
    }
    let directory = Directory::new(client);
    match command {
        UserCommand::List { output } => list(&directory.list().await?, output),
        UserCommand::Add { name, password, mut groups, cluster_admin, replace } => {
            if cluster_admin {
                groups.push(CLUSTER_ADMINS.to_owned());
            }
            let password = given(&password, &name)?;
            directory.add(&name, &password, &groups, replace).await?;
            say(&format!("user {name} can log in. Next:\n  picoshift login {name}\n"))
        }
        UserCommand::Delete { name } => {
            directory.delete(&name).await?;
            say(&format!("user {name} is gone, and so are its tokens\n"))
        }
    }
}

fn client(paths: &Paths) -> Result<Client> {
    let port = Settings::load(paths)?.port(Component::PicoshiftShim).ok_or_else(super::nothing_runs)?;
    client_for(port, "cluster-ca", Some("admin"), paths)
}

fn list(users: &[Entry], output: Output) -> Result<()> {
    if output == Output::Json {
        return say(&format!("{}\n", serde_json::to_string_pretty(users)?));
    }
    let width = users.iter().map(|user| user.name.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!("{:width$}  LOGGED IN  GROUPS\n", "NAME");
    for user in users {
        let logged_in = if user.logged_in { "yes" } else { "no" };
        let line = format!("{:width$}  {logged_in:9}  {}", user.name, user.groups.join(", "));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    say(&text)
}

/// The password that the command line gives, or a person types.
pub(crate) fn given(args: &PasswordArgs, user: &str) -> Result<String> {
    if let Some(password) = &args.password {
        return Ok(password.clone());
    }
    if args.password_stdin {
        let mut text = String::new();
        std::io::stdin()
            .take(PASSWORD_LIMIT)
            .read_to_string(&mut text)
            .context("cannot read the password")?;
        return Ok(text.trim_end_matches(['\r', '\n']).to_owned());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(
            format!("there is no password for {user}, and no terminal to ask at"),
            "give it by --password-stdin or --password",
        )
        .into());
    }
    rpassword::prompt_password(format!("Password of {user}: ")).context("cannot read the password")
}
