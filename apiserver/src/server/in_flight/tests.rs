//! Tests of rooms, queues and turns.

use futures::FutureExt;
use proptest::prelude::*;

use super::*;

const LONG: Duration = Duration::from_secs(3600);

fn rooms(size: usize) -> (InFlight, Metrics) {
    let metrics = Metrics::new();
    (InFlight::new(size, 0, size, &metrics), metrics)
}

/// A place that is there at once.
fn now(rooms: &InFlight, kind: Kind, user: &str, must: bool) -> Option<Place> {
    rooms.enter(kind, user, must, LONG).now_or_never()?.ok()
}

fn read(rooms: &InFlight, user: &str) -> Option<Place> {
    now(rooms, Kind::ReadOnly, user, false)
}

#[tokio::test]
async fn a_full_room_takes_only_those_who_must() {
    let (rooms, metrics) = rooms(1);
    let first = read(&rooms, "jane");
    assert!(first.is_some());
    assert!(read(&rooms, "john").is_none());
    assert!(now(&rooms, Kind::Mutating, "john", false).is_none());
    let must = now(&rooms, Kind::ReadOnly, "root", true);
    assert!(must.is_some());
    assert_eq!(metrics.in_flight(RequestKind::READ_ONLY).get(), 2);
    drop((first, must));
    assert_eq!(metrics.in_flight(RequestKind::READ_ONLY).get(), 0);
    assert!(read(&rooms, "john").is_some());
}

#[tokio::test]
async fn one_user_never_takes_the_whole_room() {
    let (rooms, _) = rooms(100);
    let hot: Vec<Place> = std::iter::from_fn(|| read(&rooms, "hot")).collect();
    assert!((75..80).contains(&hot.len()), "{}", hot.len());
    // Each newcomer finds a place although nobody has left.
    for n in 0..10 {
        assert!(read(&rooms, &format!("cold-{n}")).is_some());
    }
    let watches: Vec<Place> = std::iter::from_fn(|| now(&rooms, Kind::LongRunning, "hot", false)).collect();
    assert!((75..80).contains(&watches.len()), "{}", watches.len());
    assert!(now(&rooms, Kind::LongRunning, "cold", false).is_some());
}

#[tokio::test]
async fn what_becomes_free_goes_to_who_holds_least() {
    let (rooms, metrics) = rooms(2);
    let first = read(&rooms, "hot").unwrap();
    let second = read(&rooms, "hot").unwrap();
    let mut hot: Vec<_> =
        (0..100).map(|_| Box::pin(rooms.enter(Kind::ReadOnly, "hot", false, LONG))).collect();
    for waiting in &mut hot {
        assert!(waiting.now_or_never().is_none());
    }
    let mut cold = Box::pin(rooms.enter(Kind::ReadOnly, "cold", false, LONG));
    assert!(cold.as_mut().now_or_never().is_none());
    assert!(metrics.text().contains("inqueue_requests{priority_level=\"readOnly\"} 101"));
    drop(first);
    let cold = cold.now_or_never().expect("he is next, though he came last").unwrap();
    assert!(hot.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
    drop((cold, second));
    let served: Vec<_> = hot.iter_mut().filter_map(FutureExt::now_or_never).collect();
    assert_eq!(served.len(), 2, "and then the others, as far as there is room");
}

#[tokio::test]
async fn queues_and_the_time_in_them_are_bounded() {
    tokio::time::pause();
    let (rooms, metrics) = rooms(1);
    let _place = read(&rooms, "hot").unwrap();
    let patience = Duration::from_secs(15);
    let mut waiting: Vec<_> = (0..WAITING_PER_USER)
        .map(|_| Box::pin(rooms.enter(Kind::ReadOnly, "hot", false, patience)))
        .collect();
    for one in &mut waiting {
        assert!(one.now_or_never().is_none());
    }
    let full = rooms.enter(Kind::ReadOnly, "hot", false, patience).now_or_never();
    assert_eq!(full.unwrap().err(), Some(Refused::QueueFull));
    assert!(rooms.enter(Kind::ReadOnly, "cold", false, patience).now_or_never().is_none(), "he waits");
    for one in waiting {
        assert_eq!(one.await.err(), Some(Refused::TimedOut));
    }
    let text = metrics.text();
    assert!(text.contains("priority_level=\"readOnly\",reason=\"time-out\"} 300"), "{text}");
    assert!(text.contains("inqueue_requests{priority_level=\"readOnly\"} 0"), "{text}");
}

#[tokio::test]
async fn who_gives_up_waiting_leaves_nothing_behind() {
    let (rooms, _) = rooms(1);
    let place = read(&rooms, "a").unwrap();
    let mut gone = Box::pin(rooms.enter(Kind::ReadOnly, "b", false, LONG));
    assert!(gone.as_mut().now_or_never().is_none());
    let mut granted = Box::pin(rooms.enter(Kind::ReadOnly, "c", false, LONG));
    assert!(granted.as_mut().now_or_never().is_none());
    drop(gone);
    drop(place);
    // Given the place, and gone before it was looked at.
    drop(granted);
    assert!(read(&rooms, "d").is_some());
    let state = rooms.read_only.state.lock();
    assert_eq!((state.taken, state.waiting, state.users.len(), state.next.len()), (0, 0, 0, 0));
}

proptest! {
    /// However users come, wait, give up and leave: no more run than there are places, nobody waits while a place is
    /// free for him, and nothing is left at the end.
    #[test]
    fn rooms_stay_consistent(size in 1..6_usize, steps in prop::collection::vec((0..4_u8, 0..3_u8, any::<u8>()), 0..80)) {
        // Waiting sets a timer.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _inside = runtime.enter();
        let (rooms, metrics) = rooms(size);
        let mut waiting = Vec::new();
        let mut running = Vec::new();
        for (what, user, which) in steps {
            let which = usize::from(which);
            match what {
                0 | 1 => waiting.push(Box::pin(rooms.enter(Kind::ReadOnly, ["a", "b", "c"][usize::from(user)], false, LONG))),
                2 if !running.is_empty() => drop(running.swap_remove(which % running.len())),
                3 if !waiting.is_empty() => drop(waiting.swap_remove(which % waiting.len())),
                _ => {}
            }
            waiting.retain_mut(|future| match future.as_mut().now_or_never() {
                Some(place) => { running.push(place.unwrap()); false }
                None => true,
            });
            let state = rooms.read_only.state.lock();
            prop_assert_eq!(state.taken, running.len());
            prop_assert!(state.taken <= size);
            prop_assert_eq!(state.waiting, waiting.len());
            if let Some((least, _, _)) = state.next.first() {
                prop_assert!(!state.fits(*least, size));
            }
        }
        drop(waiting);
        drop(running);
        let state = rooms.read_only.state.lock();
        prop_assert_eq!((state.taken, state.waiting, state.users.len(), state.next.len()), (0, 0, 0, 0));
        prop_assert_eq!(metrics.in_flight(RequestKind::READ_ONLY).get(), 0);
    }
}
