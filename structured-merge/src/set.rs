//! [`FieldSet`]: a set of paths, as a sorted tree.

mod wire;

#[cfg(test)]
mod tests;

use crate::path::PathElement;
use crate::schema::{Schema, TypeId};

pub use wire::FieldsError;

/// A set of paths. No node is kept that is no member and leads to none, so equal sets are equal trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    element: PathElement,
    /// Whether the path that ends here is in the set.
    member: bool,
    children: FieldSet,
}

impl FieldSet {
    /// A set of these paths.
    #[must_use]
    pub fn of(paths: &[&[PathElement]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(path);
        }
        set
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a path, without its parents. The empty path, which is the whole object, cannot be owned.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = match self.find(first) {
            Ok(at) => at,
            Err(at) => {
                let node = Node { element: first.clone(), member: false, children: Self::default() };
                self.nodes.insert(at, node);
                at
            }
        };
        if rest.is_empty() {
            self.nodes[at].member = true;
        } else {
            self.nodes[at].children.insert(rest);
        }
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        // Most sets are built in order.
        match self.nodes.last() {
            Some(last) if last.element < *element => Err(self.nodes.len()),
            _ => self.nodes.binary_search_by(|node| node.element.cmp(element)),
        }
    }

    fn node(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|at| &self.nodes[at])
    }

    /// Whether a path is in the set.
    #[must_use]
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_member(last),
            [first, rest @ ..] => self.node(first).is_some_and(|node| node.children.has(rest)),
        }
    }

    /// Whether the path of this one element is in the set.
    #[must_use]
    pub fn has_member(&self, element: &PathElement) -> bool {
        self.node(element).is_some_and(|node| node.member)
    }

    /// The paths below an element, without it; `None` where there are none.
    #[must_use]
    pub fn below(&self, element: &PathElement) -> Option<&Self> {
        self.node(element).map(|node| &node.children).filter(|children| !children.is_empty())
    }

    /// The elements that paths begin with, and whether they are paths themselves.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (&PathElement, bool)> {
        self.nodes.iter().map(|node| (&node.element, node.member))
    }

    /// What is in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let (mut left, mut right) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.element.cmp(&b.element) {
                std::cmp::Ordering::Less => nodes.extend(left.next().cloned()),
                std::cmp::Ordering::Greater => nodes.extend(right.next().cloned()),
                std::cmp::Ordering::Equal => {
                    let children = a.children.union(&b.children);
                    nodes.push(Node { element: a.element.clone(), member: a.member || b.member, children });
                    left.next();
                    right.next();
                }
            }
        }
        nodes.extend(left.chain(right).cloned());
        Self { nodes }
    }

    /// What is in any of the sets; two and two, so that many small ones do not cost as many large ones.
    #[must_use]
    pub fn union_of(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            sets = sets
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => a.union(b),
                    other => other.first().cloned().unwrap_or_default(),
                })
                .collect();
        }
        sets.pop().unwrap_or_default()
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.filter_map(|node| {
            let found = other.node(&node.element)?;
            Some((node.member && found.member, node.children.intersection(&found.children)))
        })
    }

    /// What is in this set and not in the other. Paths below one that is in the other stay.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.filter_map(|node| match other.node(&node.element) {
            Some(found) => Some((node.member && !found.member, node.children.difference(&found.children))),
            None => Some((node.member, node.children.clone())),
        })
    }

    /// As [`Self::difference`], and without the paths below those that are in the other set.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.filter_map(|node| match other.node(&node.element) {
            Some(found) if found.member => None,
            Some(found) => Some((node.member, node.children.recursive_difference(&found.children))),
            None => Some((node.member, node.children.clone())),
        })
    }

    /// The paths that are no beginning of another path of the set.
    #[must_use]
    pub fn leaves(&self) -> Self {
        self.filter_map(|node| Some((node.member && node.children.is_empty(), node.children.leaves())))
    }

    /// Makes a set of what becomes of each node; nodes that end up empty are left out.
    fn filter_map(&self, change: impl Fn(&Node) -> Option<(bool, Self)>) -> Self {
        let keep = |node: &Node| {
            let (member, children) = change(node)?;
            let kept = member || !children.is_empty();
            kept.then(|| Node { element: node.element.clone(), member, children })
        };
        Self { nodes: self.nodes.iter().filter_map(keep).collect() }
    }

    /// The set with all named fields of structs on the way to its paths: they are not recorded, but are there.
    #[must_use]
    pub fn with_named_fields(&self, schema: &Schema, r#type: Option<TypeId>) -> Self {
        let atom = r#type.map(|id| schema.atom(id));
        let map = atom.and_then(|atom| atom.map.as_ref());
        let list = atom.and_then(|atom| atom.list.as_ref());
        let complete = |node: &Node| {
            let named = match &node.element {
                PathElement::Field(name) => map.and_then(|map| map.fields.get(&**name)),
                _ => None,
            };
            let below = match &node.element {
                PathElement::Field(_) => named.map(|field| field.r#type).or(map.and_then(|map| map.element)),
                PathElement::Key(_) => list.map(|list| list.element),
                _ => None,
            };
            Node {
                element: node.element.clone(),
                member: node.member || named.is_some(),
                children: node.children.with_named_fields(schema, below),
            }
        };
        Self { nodes: self.nodes.iter().map(complete).collect() }
    }

    /// Calls `visit` for every path: those that end on a level before those that go deeper.
    pub fn visit(&self, visit: &mut impl FnMut(&[PathElement])) {
        self.visit_below(&mut Vec::new(), visit);
    }

    fn visit_below(&self, path: &mut Vec<PathElement>, visit: &mut impl FnMut(&[PathElement])) {
        for node in self.nodes.iter().filter(|node| node.member) {
            path.push(node.element.clone());
            visit(path);
            path.pop();
        }
        for node in &self.nodes {
            path.push(node.element.clone());
            node.children.visit_below(path, visit);
            path.pop();
        }
    }
}
