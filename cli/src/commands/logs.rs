//! `logs`: what the components write.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Result;

use crate::components::Component;
use crate::failure::Failure;
use crate::logs::{Follower, tail_position};
use crate::paths::Paths;

/// How often new lines are looked for.
const LOOK: Duration = Duration::from_millis(200);
/// How many lines of each log are shown when there are several.
const TAIL_OF_SEVERAL: usize = 20;

/// Runs `logs`.
pub(crate) async fn run(
    paths: &Paths,
    component: Option<Component>,
    follow: bool,
    tail: Option<usize>,
) -> Result<()> {
    let components: Vec<Component> =
        component.map_or_else(|| Component::ALL.to_vec(), |component| vec![component]);
    let tail = tail.or(component.is_none().then_some(TAIL_OF_SEVERAL));
    let mut followers = Vec::new();
    for component in &components {
        let path = paths.log(component.name());
        if !follow && components.len() == 1 && !path.exists() {
            return Err(Failure::new(
                format!("{} has no log in {}", component.name(), paths.state.display()),
                "`picoshift up` starts it; or name another state directory by --state-dir",
            )
            .into());
        }
        let prefix =
            if components.len() == 1 { String::new() } else { format!("{:23} | ", component.name()) };
        let position = tail.map_or(0, |lines| tail_position(&path, lines));
        followers.push(Follower::new(path, prefix, position));
    }
    match print(&mut followers, follow).await {
        // The reader has seen enough.
        Err(err) if err.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

async fn print(followers: &mut [Follower], follow: bool) -> io::Result<()> {
    loop {
        {
            let mut output = io::stdout().lock();
            for follower in &mut *followers {
                follower.print_new(&mut output, !follow)?;
            }
            output.flush()?;
        }
        if !follow {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}
