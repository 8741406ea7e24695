//! A sound history passes, and each kind of fault that is planted in it is found.

use super::*;

fn write(key: &str, value: Option<u64>, at: u64, outcome: Outcome) -> Write {
    Write { key: key.to_owned(), value, sent: at, ended: at + 1, outcome }
}

fn event(kind: Kind, key: &str, revision: u64, value: u64) -> Event {
    Event { kind, key: key.to_owned(), revision, value }
}

fn list(at: u64, revision: u64, items: &[(&str, u64, u64)]) -> List {
    let items = items.iter().map(|(key, at, value)| ((*key).to_owned(), (*at, *value))).collect();
    List { sent: at, ended: at + 1, revision, items }
}

fn sound() -> History {
    let done = |revision| Outcome::Done(Some(revision));
    let events = vec![
        event(Kind::Added, "a", 5, 1),
        event(Kind::Modified, "a", 6, 2),
        event(Kind::Added, "b", 8, 4),
        event(Kind::Deleted, "a", 9, 2),
        event(Kind::Added, "a", 10, 6),
    ];
    History {
        writes: vec![
            write("a", Some(1), 10, done(5)),
            write("a", Some(2), 20, done(6)),
            write("a", Some(3), 30, Outcome::Refused),
            write("b", Some(4), 40, Outcome::Unknown),
            write("b", Some(5), 50, Outcome::Unknown),
            write("a", None, 60, Outcome::Done(None)),
            write("b", None, 62, Outcome::Unknown),
            write("a", Some(6), 70, done(10)),
        ],
        watchers: vec![events.clone(), events.clone(), events],
        lists: vec![list(25, 7, &[("a", 6, 2)]), list(80, 10, &[("a", 10, 6), ("b", 8, 4)]), list(5, 4, &[])],
    }
}

#[test]
fn a_sound_history_passes() {
    assert_eq!(violations(&sound()), Vec::<String>::new());
    assert_eq!(violations(&History::default()), ["nobody watched"]);
}

#[test]
fn planted_faults_are_found() {
    type Fault = fn(&mut History);
    let faults: [(&str, Fault); 20] = [
        ("a watcher misses one", |h| drop(h.watchers[1].remove(2))),
        ("a watcher misses the last", |h| drop(h.watchers[2].pop())),
        ("a watcher sees one twice", |h| h.watchers[1].insert(2, event(Kind::Modified, "a", 6, 2))),
        ("a watcher sees another order", |h| h.watchers[1].swap(1, 2)),
        ("a watcher sees another value", |h| h.watchers[1][1].value = 1),
        ("a watcher sees a revision again after a restart", |h| {
            h.watchers[1].push(event(Kind::Added, "c", 9, 9));
        }),
        ("an acknowledged write is lost", |h| {
            h.writes.push(write("c", Some(9), 72, Outcome::Done(Some(11))));
        }),
        ("an acknowledged write has another revision", |h| h.writes[1].outcome = Outcome::Done(Some(7))),
        ("an acknowledged write went to another object", |h| h.writes[1].key = "b".to_owned()),
        ("a refused write happened", |h| h.writes[3].outcome = Outcome::Refused),
        ("nobody wrote it", |h| drop(h.writes.remove(3))),
        ("an acknowledged deletion is lost", |h| h.writes.push(write("b", None, 75, Outcome::Done(None)))),
        ("a deletion nobody asked for", |h| drop(h.writes.remove(5))),
        ("a list misses one", |h| h.lists[1] = list(80, 10, &[("a", 10, 6)])),
        ("a list shows what is gone", |h| h.lists[0] = list(25, 7, &[("a", 6, 2), ("z", 3, 3)])),
        ("a list shows an old state", |h| h.lists[0] = list(25, 7, &[("a", 5, 1)])),
        ("a list goes back", |h| h.lists.push(list(90, 8, &[("a", 6, 2), ("b", 8, 4)]))),
        ("a revision goes back", |h| {
            h.lists.remove(0);
            h.writes.push(write("c", Some(9), 90, Outcome::Done(Some(7))));
            h.watchers.iter_mut().for_each(|w| w.insert(2, event(Kind::Added, "c", 7, 9)));
            h.lists[0].items.insert("c".to_owned(), (7, 9));
        }),
        ("a revision is given out twice", |h| {
            h.writes.push(write("a", Some(6), 90, Outcome::Done(Some(10))));
        }),
        ("an object is changed that is not there", |h| {
            h.watchers.iter_mut().for_each(|w| w[4].kind = Kind::Modified);
        }),
    ];
    for (what, plant) in faults {
        let mut history = sound();
        plant(&mut history);
        assert_ne!(violations(&history), Vec::<String>::new(), "{what} is not found");
    }
    let mut twice = sound();
    for events in &mut twice.watchers {
        events.push(event(Kind::Modified, "a", 11, 1));
        events.push(event(Kind::Modified, "a", 12, 6));
    }
    assert_ne!(violations(&twice), Vec::<String>::new(), "a write that happens twice is not found");
}
