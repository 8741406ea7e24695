//! The description of a resource: its names, verbs, columns. What discovery, tables and the verbs read.

pub mod column;

use picoshift_machinery::GroupVersionKind;

pub use self::column::Column;

/// A verb as discovery and authorization name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// POST.
    Create,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
    /// GET of one object.
    Get,
    /// GET of a collection.
    List,
    /// PATCH.
    Patch,
    /// PUT.
    Update,
    /// GET of a collection with `watch=true`.
    Watch,
}

impl Verb {
    /// All verbs, in alphabetical order: those of a stored resource.
    pub const ALL: &'static [Self] = &[
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// The verb's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// A subresource, for example `status`.
#[derive(Clone, Copy, Debug)]
pub struct Subresource {
    /// Its name in the path.
    pub name: &'static str,
    /// Verbs that it serves.
    pub verbs: &'static [Verb],
    /// What it answers, where that is not the resource itself.
    pub answers: Option<AnsweredKind>,
}

/// A kind that a subresource answers.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredKind {
    /// The kind, of the resource's group and version.
    pub kind: &'static str,
    /// Name of its schema in the OpenAPI document.
    pub schema: &'static str,
}

impl Subresource {
    /// The kind that it answers.
    #[must_use]
    pub fn kind(&self, resource: &Resource) -> &'static str {
        self.answers.map_or(resource.gvk.kind, |answered| answered.kind)
    }
}

/// A resource's description; one constant per resource.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// Group, version, kind.
    pub gvk: GroupVersionKind,
    /// Plural name in paths, for example `routes`.
    pub plural: &'static str,
    /// Singular name, for example `route`.
    pub singular: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs of the main resource, in alphabetical order.
    pub verbs: &'static [Verb],
    /// Short names for kubectl.
    pub short_names: &'static [&'static str],
    /// Categories, for example `all`.
    pub categories: &'static [&'static str],
    /// Subresources.
    pub subresources: &'static [Subresource],
    /// Table columns; the first is the name. A kind without them is not shown as a table.
    pub columns: &'static [Column],
    /// Field selectors that are understood, beside `metadata.name` and (namespaced) `metadata.namespace`.
    pub field_labels: &'static [&'static str],
    /// Whether the garbage collector deals with the kind. Where not, its lists and watches are empty for it, and a delete
    /// adds none of its finalizers: OpenShift patches kube-controller-manager to leave these kinds out, and gives them
    /// the garbage collection policy Unsupported.
    pub garbage_collected: bool,
    /// Whether its registry adds nothing of its own, as those of OpenShift's oauth-apiserver: names are generated without an
    /// ending, new objects have no generation unless their creator gives one, and errors that are the server's own are
    /// told where they were found, not before all others.
    pub bare: bool,
    /// Name of the schema in the OpenAPI document, for example `com.github.openshift.api.route.v1.Route`.
    pub schema: &'static str,
}

/// Kinds of Kubernetes' own that groups of ours take as they are: how their schemas begin, and their group.
const TAKEN: [(&str, &str); 1] = [("io.k8s.api.authentication.v1.", "authentication.k8s.io")];

impl Resource {
    /// The kind of the objects, which may be of another group than the resource: `tokenreviews` takes TokenReviews of
    /// `authentication.k8s.io`.
    #[must_use]
    pub fn object_kind(&self) -> GroupVersionKind {
        let taken = TAKEN.iter().find(|(beginning, _)| self.schema.starts_with(beginning));
        GroupVersionKind { group: taken.map_or(self.gvk.group, |(_, group)| group), ..self.gvk }
    }

    /// The kind of a list: `RouteList`.
    #[must_use]
    pub fn list_kind(&self) -> String {
        format!("{}List", self.gvk.kind)
    }

    /// Whether the main resource has `verb`.
    #[must_use]
    pub fn has(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// Whether the object at a subresource, or the object itself at the empty one, can be shown as a table.
    #[must_use]
    pub fn has_tables(&self, subresource: &str) -> bool {
        !self.columns.is_empty() && self.subresource(subresource).is_none_or(|s| s.answers.is_none())
    }

    /// Whether single objects have a path: `imagestreammappings`, for one, can only be created.
    #[must_use]
    pub fn has_items(&self) -> bool {
        self.verbs.iter().any(|verb| matches!(verb, Verb::Delete | Verb::Get | Verb::Patch | Verb::Update))
    }

    /// The subresource `name`.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }
}
