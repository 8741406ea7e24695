//! Every kind of hash, names that are cut, and how long a guess takes.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn bcrypt_line(name: &str, password: &str, prefix: &str) -> String {
    let hash = bcrypt::hash(password, 4).unwrap();
    format!("{name}:{}{}\n", prefix, &hash[4..])
}

fn file() -> Htpasswd {
    let mut text = bcrypt_line("bea", "bcrypt-y", "$2y$") + &bcrypt_line("bob", "bcrypt-a", "$2a$");
    text += &bcrypt_line("new", "bcrypt-b", "$2b$");
    text += &format!("ann:{}\r\n", apr1::hash("apr1", "saltsalt"));
    text += "sue:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";
    text += "twice:{SHA}nobody's\ntwice:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";
    text += "\nno line\nold:abcdefghijklm\nplain:password1\nbroken:$2y$10$short\ncostly:";
    text += &format!("$2y$31${}\n", "a".repeat(53));
    Htpasswd::parse(&text)
}

#[test]
fn every_kind_of_hash_is_checked() {
    let file = file();
    for (name, password) in [
        ("bea", "bcrypt-y"),
        ("bob", "bcrypt-a"),
        ("ann", "apr1"),
        ("sue", "password"),
        ("twice", "password"),
    ] {
        assert_eq!(file.check(name, password), Ok(Some(name.to_owned())), "{name}");
        assert_eq!(file.check(name, "wrong"), Ok(None), "{name}");
        assert_eq!(file.check(name, ""), Ok(None), "{name}");
    }
    assert_eq!(file.check("nobody", "password"), Ok(None));
    assert_eq!(file.check("no line", "password"), Ok(None));
    for (name, error) in [
        ("a:b", Unusable::Name),
        ("new", Unusable::Kind),
        ("old", Unusable::Crypt),
        ("plain", Unusable::Kind),
        ("broken", Unusable::Malformed("Malformed bcrypt hash")),
        ("costly", Unusable::Malformed("Malformed bcrypt hash")),
    ] {
        assert_eq!(file.check(name, "password1"), Err(error), "{name}");
    }
    assert!(Htpasswd::default().is_empty());
    assert_eq!(Htpasswd::default().check("x", "y"), Ok(None));
}

#[test]
fn long_names_are_cut() {
    let long = "é".repeat(200);
    let cut = "é".repeat(127);
    let file = Htpasswd::parse(&format!("{cut}:{{SHA}}W6ph5Mm5Pz8GgiULbPgzG37mj9g="));
    assert_eq!(file.check(&long, "password"), Ok(Some(cut)));
}

fn time(file: &Htpasswd, name: &str) -> Duration {
    let begun = Instant::now();
    let _ = file.check(name, "a guess");
    begun.elapsed()
}

#[test]
fn who_is_not_there_takes_as_long_as_who_is() {
    let text = format!("bea:{}\n", bcrypt::hash("x", 8).unwrap()).replace("$2b$", "$2y$");
    let file = Htpasswd::parse(&(text + "sue:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\nplain:password1\n"));
    for other in ["nobody", "sue", "plain"] {
        // Noise only makes things longer, so the shortest of many are compared: of as many as it takes.
        let (mut shortest, mut known) = (Duration::MAX, Duration::MAX);
        let alike = (0..200).any(|_| {
            (shortest, known) = (shortest.min(time(&file, other)), known.min(time(&file, "bea")));
            (0.5..2.0).contains(&(shortest.as_secs_f64() / known.as_secs_f64()))
        });
        assert!(alike, "{other}: {shortest:?} beside {known:?}");
    }
}

proptest! {
    #[test]
    fn no_file_breaks_the_reader(text in "([a-z]{0,3}:?(\\$apr1\\$|\\$2y\\$0[0-9]\\$|\\{SHA\\})?[a-z$./0-9]{0,60}\\n?){0,5}", name in "[a-z:]{0,3}") {
        let file = Htpasswd::parse(&text);
        prop_assert!(!matches!(file.check(&name, "guess"), Ok(Some(found)) if found != name));
    }

    #[test]
    fn apr1_hashes_are_read_as_they_are_written(password in "\\PC{0,40}", salt in "[a-zA-Z0-9./]{1,8}") {
        let file = Htpasswd::parse(&format!("x:{}", apr1::hash(&password, &salt)));
        prop_assert_eq!(file.check("x", &password), Ok(Some("x".to_owned())));
    }
}
