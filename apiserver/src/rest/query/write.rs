//! Options of create, update and patch.

use picoshift_machinery::Status;
use picoshift_machinery::field_error::{FieldError, quote};

use super::{Query, dry_run, not_supported};
use crate::rest::options::WriteOptions;
use crate::schema::FieldValidation;

/// Which options a write has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// A server-side apply.
    Apply,
    /// A create.
    Create,
    /// A patch that is no apply.
    Patch,
    /// An update.
    Update,
}

/// Options of a write, and what only decoding and managed fields need.
#[derive(Clone, Debug, Default)]
pub struct WriteParameters {
    /// For the storage; the caller sets the subresource.
    pub options: WriteOptions,
    /// `fieldValidation`.
    pub field_validation: FieldValidation,
    /// `fieldManager`; empty for none.
    pub field_manager: String,
    /// `force` of an apply.
    pub force: bool,
}

/// The longest field manager, in bytes.
pub(crate) const MAX_MANAGER: usize = 128;
/// How many characters of a field manager are told to be wrong: each error shows the whole name.
const MAX_TOLD: usize = 10;

/// Options of a write.
///
/// # Errors
/// 422 for a value that is not allowed.
pub fn write_options(query: &Query<'_>, kind: WriteKind) -> Result<WriteParameters, Status> {
    let mut errors = Vec::new();
    let force = query.switch("force").filter(|_| matches!(kind, WriteKind::Apply | WriteKind::Patch));
    let field_manager = query.text("fieldManager");
    match kind {
        WriteKind::Apply if field_manager.is_empty() => {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        WriteKind::Patch if force.is_some() => {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        _ => {}
    }
    errors.extend(check_manager(&field_manager, "fieldManager"));
    let dry_runs: Vec<String> = query.all("dryRun").map(str::to_owned).collect();
    let dry_run = dry_run(&dry_runs, &mut errors);
    let field_validation = match query.first("fieldValidation").unwrap_or_default() {
        "Ignore" => FieldValidation::Ignore,
        "" | "Warn" => FieldValidation::Warn,
        "Strict" => FieldValidation::Strict,
        other => {
            errors.push(not_supported("fieldValidation", quote(other), &["", "Ignore", "Strict", "Warn"]));
            FieldValidation::Warn
        }
    };
    if errors.is_empty() {
        let options = WriteOptions { dry_run, ..WriteOptions::default() };
        return Ok(WriteParameters {
            options,
            field_validation,
            field_manager,
            force: force.unwrap_or_default(),
        });
    }
    let name = match kind {
        WriteKind::Apply | WriteKind::Patch => "PatchOptions",
        WriteKind::Create => "CreateOptions",
        WriteKind::Update => "UpdateOptions",
    };
    Err(Status::invalid("meta.k8s.io", name, "", &errors))
}

/// Errors of the name of a manager, which the field at `path` gives.
pub(crate) fn check_manager(manager: &str, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > MAX_MANAGER {
        errors.push(FieldError::too_long(path, MAX_MANAGER));
        return errors;
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !is_printable(*c)).take(MAX_TOLD) {
        let detail = format!("invalid character {} (at position {at})", code_point(c));
        errors.push(FieldError::invalid_str(path, manager, detail));
    }
    errors
}

/// Whether Go prints a character: letters, marks, numbers, punctuation, symbols and the space, but no other space.
pub(crate) fn is_printable(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_private_or_format(c))
}

fn is_private_or_format(c: char) -> bool {
    matches!(u32::from(c), 0xad | 0x600..=0x605 | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f
        | 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb | 0xe0000..=0x10ffff)
}

/// A character as Go's `%#U` shows it; one that cannot be printed is its number alone.
fn code_point(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}
