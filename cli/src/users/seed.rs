//! The users that a new cluster gets: `deploy/users.yaml`.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::directory::Directory;
use crate::yaml;

const FILE: &str = include_str!("../../../deploy/users.yaml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seed {
    users: Vec<User>,
}

/// A user of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    username: String,
    password: String,
    #[serde(default)]
    groups: Vec<String>,
}

/// Makes the users, unless the cluster has a Secret of passwords. Says how many.
pub(crate) async fn ensure(directory: &Directory) -> Result<usize> {
    if directory.exists().await? {
        return Ok(0);
    }
    let users = read(FILE)?;
    // The Secret comes last and at once: without it the next `up` begins anew.
    for user in &users {
        for group in &user.groups {
            directory.groups.add(group, &user.username).await?;
        }
    }
    let passwords: Vec<_> =
        users.iter().map(|user| (user.username.as_str(), user.password.as_str())).collect();
    directory.create(&passwords).await?;
    Ok(users.len())
}

fn read(text: &str) -> Result<Vec<User>> {
    let document = yaml::documents(text)?.pop().context("users.yaml is empty")?;
    let seed: Seed = serde_json::from_value(document).context("users.yaml")?;
    Ok(seed.users)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::CLUSTER_ADMINS;
    use crate::users::htpasswd::check_name;

    #[test]
    fn the_administrator_is_one() {
        let users = read(FILE).unwrap();
        for user in &users {
            check_name(&user.username).unwrap();
            let is_admin = user.groups.iter().any(|group| group == CLUSTER_ADMINS);
            assert_eq!(is_admin, user.username == "admin");
        }
        assert_eq!(users.len(), 3);
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        assert!(read("users: [{username: a, password: b, group: [c]}]").is_err());
    }
}
