//! Upgraded connections: exec, attach, port-forward, and whatever runs behind `proxy`. Bytes go both ways until both sides
//! have ended; the end of one is passed on and the other goes on.

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use picoshift_machinery::body;
use picoshift_machinery::listener::Place;
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::copy_bidirectional_with_sizes;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::headers;
use crate::relay::{AnswerBody, Counted};
use crate::revocation::Use;

/// Bytes on their way in one direction.
const BUFFER: usize = 16 * 1024;

/// All tunnels of the process.
#[derive(Clone, Debug, Default)]
pub struct Tunnels {
    tasks: TaskTracker,
    cut: CancellationToken,
}

/// What a tunnel holds until its end.
pub struct Held {
    /// The client's place among the connections.
    pub place: Option<Place>,
    /// The token that it was opened with.
    pub using: Option<Use>,
    /// Requests upstream.
    pub running: Counted,
}

impl Tunnels {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Joins the client to the server, which has agreed in `response`. Answers what the client is told.
    #[must_use]
    pub fn open(
        &self,
        client: OnUpgrade,
        mut response: Response<Incoming>,
        held: Held,
        open: &Gauge,
    ) -> Response<AnswerBody> {
        let server = hyper::upgrade::on(&mut response);
        let (cut, counted) = (self.cut.clone(), Counted::in_gauge(open));
        self.tasks.spawn(async move {
            let joined = async {
                let (client, server) = match futures::future::try_join(client, server).await {
                    Ok(both) => both,
                    Err(error) => {
                        tracing::debug!(%error, "an upgrade came to nothing");
                        return;
                    }
                };
                let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
                let copied = copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER).await;
                if let Err(error) = copied {
                    tracing::debug!(%error, "a tunnel broke");
                }
            };
            let revoked = async {
                match &held.using {
                    Some(using) => using.revoked().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = joined => {}
                () = revoked => {}
                () = cut.cancelled() => {}
            }
            drop((held.place, held.running, counted));
        });
        let (mut head, _) = response.into_parts();
        let protocol = head.headers.get(UPGRADE).cloned();
        headers::drop_hop_by_hop(&mut head.headers);
        head.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        if let Some(protocol) = protocol {
            head.headers.insert(UPGRADE, protocol);
        }
        head.status = StatusCode::SWITCHING_PROTOCOLS;
        Response::from_parts(head, AnswerBody::Own(body::empty()))
    }

    /// Waits until all tunnels have ended, and ends the rest when `patience` is over.
    pub async fn drained(&self, patience: std::time::Duration) {
        self.tasks.close();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::warn!(tunnels = self.tasks.len(), "cutting tunnels that did not finish in time");
            self.cut.cancel();
            self.tasks.wait().await;
        }
    }
}
