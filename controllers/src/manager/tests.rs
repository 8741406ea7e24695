//! Controllers that fail, beside one that does not.

use std::sync::atomic::{AtomicU32, Ordering};

use picoshift_machinery::readiness::Probe;

use super::*;

/// Fails in its own way at each start, up to a number of times; then works.
struct Fake {
    name: &'static str,
    failures: u32,
    panics: bool,
    starts: AtomicU32,
    finished: AtomicU32,
}

impl Fake {
    fn new(name: &'static str, failures: u32, panics: bool) -> Arc<Self> {
        Arc::new(Self { name, failures, panics, starts: AtomicU32::new(0), finished: AtomicU32::new(0) })
    }

    fn starts(&self) -> u32 {
        self.starts.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Controller for Fake {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn run(&self, run: Run) -> Result<(), Failure> {
        run.ready.missing("objects", "not read yet");
        if self.starts.fetch_add(1, Ordering::SeqCst) < self.failures {
            assert!(!self.panics, "as it is told to");
            return Err("as it is told to".into());
        }
        run.ready.found("objects");
        run.stop.wait().await;
        sleep(Duration::from_secs(3)).await;
        self.finished.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

fn states(checks: &Checks) -> Vec<String> {
    let checks = checks.of(Probe::Ready).into_iter();
    checks.map(|check| check.run().err().unwrap_or_else(|| "ok".to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn each_controller_fails_alone_and_is_started_anew() {
    let (good, bad, ugly) =
        (Fake::new("good", 0, false), Fake::new("bad", 3, false), Fake::new("ugly", 2, true));
    let (checks, metrics) = (Checks::new(), Metrics::new());
    let all: Vec<Arc<dyn Controller>> =
        vec![Arc::clone(&good) as _, Arc::clone(&bad) as _, Arc::clone(&ugly) as _];
    let manager = Manager::new(all, &checks, &metrics);
    let names: Vec<_> = checks.of(Probe::Ready).into_iter().map(|check| check.name).collect();
    assert_eq!(names, ["controller/good", "controller/bad", "controller/ugly"]);
    assert!(checks.of(Probe::Live).is_empty(), "a restart of the process would not help");
    assert_eq!(states(&checks), ["ok", "ok", "ok"], "those that are not to run miss nothing");

    let drain = Drain::new();
    let watch = async {
        sleep(Duration::from_millis(500)).await;
        let why = "controller: as it is told to";
        let panicked = "controller: it panicked: as it is told to";
        assert_eq!(states(&checks), ["ok", why, panicked]);
        sleep(Duration::from_secs(1)).await;
        assert_eq!((good.starts(), bad.starts(), ugly.starts()), (1, 2, 2));
        sleep(Duration::from_secs(60)).await;
        assert_eq!((good.starts(), bad.starts(), ugly.starts()), (1, 4, 3));
        assert_eq!(states(&checks), ["ok", "ok", "ok"]);
        assert_eq!(metrics.of("bad").restarts.get(), 3);
        drain.start();
    };
    tokio::join!(manager.work(&drain), watch);
    for fake in [good, bad, ugly] {
        assert_eq!(fake.finished.load(Ordering::SeqCst), 1, "{} was not let finish", fake.name);
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_cut() {
    struct Endless;
    #[async_trait]
    impl Controller for Endless {
        fn name(&self) -> &'static str {
            "endless"
        }
        async fn run(&self, run: Run) -> Result<(), Failure> {
            run.ready.missing("the end", "there is none");
            std::future::pending().await
        }
    }
    let checks = Checks::new();
    let manager = Manager::new(vec![Arc::new(Endless)], &checks, &Metrics::new());
    let drain = Drain::new();
    let began = Instant::now();
    let later = async {
        sleep(Duration::from_secs(5)).await;
        assert_eq!(states(&checks), ["the end: there is none"]);
        drain.start();
    };
    tokio::join!(manager.work(&drain), later);
    assert_eq!(began.elapsed(), Duration::from_secs(5) + FINISH_WITHIN);
    assert_eq!(states(&checks), ["ok"]);
}
