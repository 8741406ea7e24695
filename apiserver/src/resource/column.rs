//! Columns of tables, and the ones that many tables have.

/// A column of the tables that kubectl prints.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// OpenAPI type: `string`, `integer`, `date` …
    pub r#type: &'static str,
    /// OpenAPI format; `name` for the name column.
    pub format: &'static str,
    /// What the column shows.
    pub description: &'static str,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i32,
}

/// The column of names, as every table begins.
pub const NAME: Column = name(
    "Name",
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
);

/// A column of texts that is always shown.
#[must_use]
pub const fn text(name: &'static str, description: &'static str) -> Column {
    Column { name, r#type: "string", format: "", description, priority: 0 }
}

/// A column of names that is always shown.
#[must_use]
pub const fn name(name: &'static str, description: &'static str) -> Column {
    Column { format: "name", ..text(name, description) }
}

/// A column of texts that is shown with `-o wide`.
#[must_use]
pub const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { priority: 1, ..text(name, description) }
}
