//! Memory of our server: at rest, and with 10,000 Routes and 100 watchers.

use picoshift_tests::ControlPlane;

use crate::cpu::our_memory;
use crate::fixtures;
use crate::measure::{Bench, Way};
use crate::peer::Peer;
use crate::report::Record;
use crate::watch::Audience;

const ROUTES: usize = 10_000;

/// Before anybody has asked for anything.
pub(crate) fn at_rest(plane: &ControlPlane) -> anyhow::Result<Record> {
    Ok(Record::memory("memory-at-rest", our_memory(&plane.home)?))
}

/// After all other cases, with 10,000 more Routes and while 100 clients watch them.
pub(crate) async fn loaded(plane: &ControlPlane, bench: &Bench) -> anyhow::Result<Record> {
    let namespace = fixtures::filled(ROUTES);
    fixtures::new_namespace(&bench.admin, &namespace).await?;
    fixtures::create(&bench.admin, Peer::Ours, &namespace, ROUTES).await?;
    let _audience = Audience::gather(bench, Peer::Ours, Way::Direct, ROUTES).await?;
    Ok(Record::memory("memory-10000-routes-100-watchers", our_memory(&plane.home)?))
}
