//! A stable sort that does, step by step, what Go's `sort.SliceStable` does: the order that strategic merge patches sort by
//! contradicts itself for unknown items, so what comes out hangs on the steps. (Rust's own sort may panic at such an
//! order.) Insertion sort of short blocks, then merges in place by rotation (SymMerge of Kim and Kutzner).

const BLOCK: usize = 20;

/// Sorts by `less`.
pub(super) fn sort<T>(list: &mut [T], less: &dyn Fn(&T, &T) -> bool) {
    let length = list.len();
    for start in (0..length).step_by(BLOCK) {
        insert(list, start, (start + BLOCK).min(length), less);
    }
    let mut block = BLOCK;
    while block < length {
        let mut start = 0;
        while start + block < length {
            merge(list, start, start + block, (start + 2 * block).min(length), less);
            start += 2 * block;
        }
        block *= 2;
    }
}

fn insert<T>(list: &mut [T], start: usize, end: usize, less: &dyn Fn(&T, &T) -> bool) {
    for at in start + 1..end {
        let mut to = at;
        while to > start && less(&list[to], &list[to - 1]) {
            list.swap(to, to - 1);
            to -= 1;
        }
    }
}

/// Merges the sorted `start..middle` and `middle..end`.
fn merge<T>(list: &mut [T], start: usize, middle: usize, end: usize, less: &dyn Fn(&T, &T) -> bool) {
    if middle - start == 1 {
        let (mut low, mut high) = (middle, end);
        while low < high {
            let half = low.midpoint(high);
            if less(&list[half], &list[start]) { low = half + 1 } else { high = half }
        }
        list[start..low].rotate_left(1);
        return;
    }
    if end - middle == 1 {
        let (mut low, mut high) = (start, middle);
        while low < high {
            let half = low.midpoint(high);
            if less(&list[middle], &list[half]) { high = half } else { low = half + 1 }
        }
        list[low..=middle].rotate_right(1);
        return;
    }
    let half = start.midpoint(end);
    let sum = half + middle;
    let (mut low, mut high) = if middle > half { (sum - end, half) } else { (start, middle) };
    while low < high {
        let at = low.midpoint(high);
        if less(&list[sum - 1 - at], &list[at]) { high = at } else { low = at + 1 }
    }
    let last = sum - low;
    if low < middle && middle < last {
        list[low..last].rotate_left(middle - low);
    }
    if start < low && low < half {
        merge(list, start, low, half, less);
    }
    if half < last && last < end {
        merge(list, half, last, end, less);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorts_as_a_stable_sort(list in prop::collection::vec(0..9_u32, 0..200)) {
            let mut ours: Vec<(u32, usize)> = list.into_iter().zip(0..).collect();
            let mut theirs = ours.clone();
            sort(&mut ours, &|left, right| left.0 < right.0);
            theirs.sort_by_key(|item| item.0);
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn an_order_that_contradicts_itself_is_survived(length in 0..150_usize, answers in any::<u64>()) {
            let mut list: Vec<usize> = (0..length).collect();
            sort(&mut list, &|left, right| answers >> ((left * 7 + right) % 64) & 1 == 1);
            list.sort_unstable();
            prop_assert_eq!(list, (0..length).collect::<Vec<_>>());
        }
    }
}
