//! The same question, asked by many at once, is put once.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;

type Flight<V> = Shared<BoxFuture<'static, Option<V>>>;

/// Questions that are being answered now.
pub struct SingleFlight<K, V> {
    flights: Arc<Mutex<HashMap<K, Flight<V>>>>,
}

impl<K, V> Default for SingleFlight<K, V> {
    fn default() -> Self {
        Self { flights: Arc::default() }
    }
}

impl<K, V> SingleFlight<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// The answer to `key`: of the question that is under way, else of `ask`. The question goes on when the callers
    /// have gone. `None` when it panicked.
    pub async fn run<F>(&self, key: K, ask: impl FnOnce() -> F) -> Option<V>
    where
        F: Future<Output = V> + Send + 'static,
    {
        let flight = {
            let mut flights = self.flights.lock();
            if let Some(flight) = flights.get(&key) {
                flight.clone()
            } else {
                let landing = Landing { key: key.clone(), flights: Arc::clone(&self.flights) };
                let answer = ask();
                let task = tokio::spawn(async move {
                    let _landing = landing;
                    answer.await
                });
                let flight = task.map(Result::ok).boxed().shared();
                flights.insert(key, flight.clone());
                flight
            }
        };
        flight.await
    }
}

/// Takes a question off the table, also when it panicked.
struct Landing<K: Eq + Hash, V> {
    key: K,
    flights: Arc<Mutex<HashMap<K, Flight<V>>>>,
}

impl<K: Eq + Hash, V> Drop for Landing<K, V> {
    fn drop(&mut self) {
        // The flight itself is dropped outside the lock.
        let flight = self.flights.lock().remove(&self.key);
        drop(flight);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn many_ask_one_question_and_the_next_asks_anew() {
        let flights = SingleFlight::<&str, usize>::default();
        let asked = Arc::new(AtomicUsize::new(0));
        let ask = || {
            let asked = Arc::clone(&asked);
            async move {
                tokio::task::yield_now().await;
                asked.fetch_add(1, Ordering::SeqCst)
            }
        };
        let answers = futures::future::join_all((0..10).map(|_| flights.run("a", ask))).await;
        assert_eq!(answers, vec![Some(0); 10]);
        assert_eq!(flights.run("a", ask).await, Some(1));
        assert!(flights.flights.lock().is_empty());
    }

    #[tokio::test]
    async fn a_panic_leaves_nothing_behind() {
        let flights = SingleFlight::<&str, usize>::default();
        assert_eq!(flights.run("a", || async { panic!("as the test wants") }).await, None);
        assert_eq!(flights.run("a", || async { 1 }).await, Some(1));
    }
}
