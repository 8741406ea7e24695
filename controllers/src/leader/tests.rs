//! Elections on a clock that the tests move: two candidates, a leader that dies, one that is cut off, clocks that lie.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;

const TIMING: Timing = Timing {
    lease: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};
const LONG: Duration = Duration::from_secs(3600);

/// A Lease in memory, with optimistic locks as kube-apiserver's.
#[derive(Clone)]
struct Memory {
    lease: Arc<watch::Sender<Option<Lease>>>,
    revision: Arc<Mutex<u64>>,
    /// This candidate is cut off.
    down: Arc<Mutex<bool>>,
}

impl Memory {
    fn new() -> Self {
        Self { lease: Arc::new(watch::Sender::new(None)), revision: Arc::default(), down: Arc::default() }
    }

    /// The same Lease by another connection.
    fn other(&self) -> Self {
        Self { down: Arc::default(), ..self.clone() }
    }

    fn write(&self, lease: &Lease, expected: Option<&str>) -> Result<Lease, LeaseError> {
        if *self.down.lock() {
            return Err(LeaseError::Failed("connection refused".to_owned()));
        }
        let mut revision = self.revision.lock();
        let current = self.lease.borrow().as_ref().map(|lease| lease.resource_version().unwrap_or_default());
        if current.as_deref() != expected {
            return Err(LeaseError::Conflict);
        }
        *revision += 1;
        let mut lease = lease.clone();
        lease.metadata.resource_version = Some(revision.to_string());
        self.lease.send_replace(Some(lease.clone()));
        Ok(lease)
    }

    fn spec(&self) -> LeaseSpec {
        self.lease.borrow().clone().and_then(|lease| lease.spec).unwrap_or_default()
    }
}

#[async_trait]
impl Leases for Memory {
    fn watch(&self) -> BoxStream<'static, Option<Lease>> {
        let seen = self.lease.subscribe();
        let first = Some(seen.borrow().clone());
        futures::stream::unfold((seen, first), |(mut seen, first)| async move {
            if let Some(first) = first {
                seen.mark_unchanged();
                return Some((first, (seen, None)));
            }
            seen.changed().await.ok()?;
            let lease = seen.borrow_and_update().clone();
            Some((lease, (seen, None)))
        })
        .boxed()
    }

    async fn get(&self) -> Result<Option<Lease>, LeaseError> {
        Ok(self.lease.borrow().clone())
    }

    async fn create(&self, lease: &Lease) -> Result<Lease, LeaseError> {
        self.write(lease, None)
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, LeaseError> {
        self.write(lease, lease.metadata.resource_version.as_deref())
    }
}

fn elector(leases: &Memory, identity: &str) -> Elector<Memory> {
    Elector::new(leases.clone(), identity.to_owned(), TIMING, Timestamp::now)
}

async fn lead(elector: &Elector<Memory>) -> Held {
    timeout(LONG, elector.acquire(&Drain::new())).await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_the_second_begins_when_the_lease_is_given_back() {
    let leases = Memory::new();
    let (a, b) = (elector(&leases, "a"), elector(&leases, "b"));
    let mut held = lead(&a).await;
    assert_eq!(leases.spec().holder_identity.as_deref(), Some("a"));
    assert_eq!(leases.spec().lease_transitions, Some(0));
    let begun = Instant::now();
    tokio::select! {
        _ = lead(&b) => panic!("two lead"),
        () = a.hold(&mut held) => panic!("lost"),
        () = sleep(LONG / 2) => {}
    }
    assert!(begun.elapsed() >= LONG / 2);
    assert_eq!(leases.spec().holder_identity.as_deref(), Some("a"));

    let (_, second) = tokio::join!(a.release(held), lead(&b));
    assert!(begun.elapsed() < LONG / 2 + Duration::from_secs(1), "b waited for a lease that was free");
    assert_eq!(leases.spec().holder_identity.as_deref(), Some("b"));
    assert_eq!(leases.spec().lease_transitions, Some(1));
    assert!(second.resource_version().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_dies_is_followed_after_the_lease() {
    let leases = Memory::new();
    let (a, b) = (elector(&leases, "a"), elector(&leases, "b"));
    let mut held = lead(&a).await;
    let died = tokio::select! {
        () = a.hold(&mut held) => panic!("lost"),
        () = sleep(Duration::from_secs(61)) => Instant::now(),
    };
    lead(&b).await;
    assert!(died.elapsed() <= TIMING.lease, "{:?}", died.elapsed());
    // a never comes back, but if its writes were still under way they would change nothing.
    assert!(matches!(a.renew(&mut held).await, Err(LeaseError::Conflict)));
    assert_eq!(leases.spec().holder_identity.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_begins() {
    let leases = Memory::new();
    let (a, b) = (elector(&leases, "a"), elector(&leases.other(), "b"));
    let mut held = lead(&a).await;
    let a_ends = async {
        sleep(Duration::from_secs(33)).await;
        *leases.down.lock() = true;
    };
    let a_leads = async {
        a.hold(&mut held).await;
        Instant::now()
    };
    let b_leads = async {
        lead(&b).await;
        Instant::now()
    };
    let ((), stopped, began) = tokio::join!(a_ends, a_leads, b_leads);
    assert!(stopped + Duration::from_secs(1) < began, "{stopped:?} {began:?}");
}

#[tokio::test(start_paused = true)]
async fn one_of_many_wins() {
    let leases = Memory::new();
    let names: Vec<String> = (0..20).map(|number| format!("candidate-{number}")).collect();
    let candidates = names.iter().map(|name| {
        let candidate = elector(&leases, name);
        async move { timeout(TIMING.lease / 2, candidate.acquire(&Drain::new())).await.is_ok() }
    });
    let won = futures::future::join_all(candidates).await;
    assert_eq!(won.iter().filter(|won| **won).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn clocks_that_jump_change_nothing() {
    let leases = Memory::new();
    let far = || Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(24 * 365 * 200);
    let a = Elector::new(leases.clone(), "a".to_owned(), TIMING, || Timestamp::UNIX_EPOCH);
    let b = Elector::new(leases.clone(), "b".to_owned(), TIMING, far);
    let mut held = lead(&a).await;
    // To b, a renewed the lease two centuries ago.
    tokio::select! {
        _ = lead(&b) => panic!("two lead"),
        () = a.hold(&mut held) => panic!("lost"),
        () = sleep(LONG / 2) => {}
    }
    a.release(held).await;
    let mut held = lead(&b).await;
    // To a, b renews it in the far future: when b falls silent a takes over all the same.
    tokio::select! {
        _ = lead(&a) => panic!("two lead"),
        () = b.hold(&mut held) => panic!("lost"),
        () = sleep(LONG / 2) => {}
    }
    let died = Instant::now();
    lead(&a).await;
    assert!(died.elapsed() <= TIMING.lease);
}

#[tokio::test(start_paused = true)]
async fn who_writes_to_the_lease_does_not_take_it() {
    let leases = Memory::new();
    let a = elector(&leases, "a");
    let mut held = lead(&a).await;
    let meddle = async {
        for _ in 0..5 {
            sleep(Duration::from_secs(3)).await;
            let mut lease = leases.lease.borrow().clone().unwrap();
            lease.metadata.annotations = Some([("note".to_owned(), "hello".to_owned())].into());
            leases.replace(&lease).await.unwrap();
        }
        sleep(LONG).await;
    };
    tokio::select! {
        () = a.hold(&mut held) => panic!("lost"),
        () = meddle => {}
    }
    let annotations = leases.lease.borrow().clone().unwrap().metadata.annotations.unwrap();
    assert_eq!(annotations["note"], "hello", "a renewal keeps what others wrote");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_process_with_the_same_identity_goes_on_at_once() {
    let leases = Memory::new();
    drop(lead(&elector(&leases, "a")).await);
    let begun = Instant::now();
    lead(&elector(&leases, "a")).await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(leases.spec().lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_candidacy() {
    let leases = Memory::new();
    let _held = lead(&elector(&leases, "a")).await;
    let stop = Drain::new();
    stop.start();
    assert!(elector(&leases, "b").acquire(&stop).await.is_none());
}
