//! The parameters of paths and queries.

/// One parameter of a path or of a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    pub(super) kind: &'static str,
    pub(super) description: &'static str,
}

const fn query(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "query", kind, description }
}

pub(super) const NAME: Parameter =
    Parameter { name: "name", place: "path", kind: "string", description: "name of the object" };
pub(super) const NAMESPACE: Parameter = Parameter {
    name: "namespace",
    place: "path",
    kind: "string",
    description: "object name and auth scope, such as for teams and projects",
};
pub(super) const PRETTY: Parameter =
    query("pretty", "string", "If 'true', then the output is pretty printed.");
pub(super) const DRY_RUN: Parameter =
    query("dryRun", "string", "With the value All, the request is processed in full but nothing is stored.");
pub(super) const FIELD_MANAGER: Parameter = query(
    "fieldManager",
    "string",
    "Name of the actor that makes the change: at most 128 printable characters.",
);
pub(super) const FIELD_VALIDATION: Parameter = query(
    "fieldValidation",
    "string",
    "What happens to unknown or duplicate fields: Ignore, Warn (the default) or Strict.",
);
pub(super) const FORCE: Parameter = query(
    "force",
    "boolean",
    "With an apply patch, take over fields that others own. Not for other patches.",
);

pub(super) const LIST: [Parameter; 10] = [
    query("allowWatchBookmarks", "boolean", "Whether a watch may send events of type BOOKMARK."),
    query("continue", "string", "The continue token of an earlier, incomplete list."),
    query("fieldSelector", "string", "Restricts the objects by their fields."),
    query("labelSelector", "string", "Restricts the objects by their labels."),
    query("limit", "integer", "The largest number of objects in one answer."),
    query("resourceVersion", "string", "The version from which, or at which, objects are served."),
    query("resourceVersionMatch", "string", "How resourceVersion is applied to a list."),
    query(
        "sendInitialEvents",
        "boolean",
        "Whether a watch begins with events for all objects and a bookmark.",
    ),
    query("timeoutSeconds", "integer", "Seconds after which a list or a watch ends."),
    query("watch", "boolean", "Watch for changes instead of a list."),
];

pub(super) const DELETE: [Parameter; 4] = [
    DRY_RUN,
    query("gracePeriodSeconds", "integer", "Seconds before the object is deleted; 0 for at once."),
    query("orphanDependents", "boolean", "Deprecated: use propagationPolicy."),
    query("propagationPolicy", "string", "What happens to dependents: Orphan, Background or Foreground."),
];

/// Parameters of a list that a deletecollection has not.
pub(super) const WATCH_ONLY: [&str; 2] = ["allowWatchBookmarks", "watch"];
