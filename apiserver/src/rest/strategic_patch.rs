//! Strategic merge patches: objects and lists are merged as the Go types' tags say, and the patch may carry directives
//! (`k8s.io/apimachinery/pkg/util/strategicpatch`).
//!
//! In: an object as clients see it, the patch, the schema. Out: the patched object and warnings, or the error that
//! kube-apiserver gives. The work is bounded: lists are compared item by item, so a small patch could keep a server busy.

mod go_text;
mod lists;
mod merge;
mod order;
#[cfg(test)]
mod tests;

use http::StatusCode;
use picoshift_machinery::{FieldError, Object, Status};
use serde_json::{Map, Value};

use self::merge::Merge;
use super::query::without_reason;
use crate::resource::Resource;
use crate::schema::{FieldValidation, Schemas, strict_error};

/// Why a patch does not apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum PatchError {
    #[error("invalid patch format of primitive list")]
    PrimitiveList,
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    #[error("invalid patch format of setElementOrder list")]
    SetElementOrder,
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// What upstream answers when its code has looked at the type of nothing, or compared what cannot be compared.
    #[error("This request caused apiserver to panic. Look in the logs for details.")]
    Panic,
    /// What upstream has no kind of error for.
    #[error("{0}")]
    Other(String),
    #[error("the patch compares too many items of lists")]
    TooMuchWork,
}

impl PatchError {
    fn status(&self) -> Status {
        match self {
            Self::PrimitiveList | Self::RetainKeys | Self::SetElementOrder => {
                Status::bad_request(self.to_string())
            }
            Self::ListOfLists => {
                tracing::debug!(error = %self, "a strategic merge patch does not apply");
                let message = "the server rejected our request due to an error in our request";
                Status::router(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
            }
            Self::Panic | Self::Other(_) => without_reason(self.to_string()),
            Self::TooMuchWork => {
                Status::failure(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", self.to_string())
            }
        }
    }
}

/// Applies a patch; answers the object, as the Go type would be, and warnings about fields. `strict` are the repeated fields
/// of the patch document.
///
/// # Errors
/// 400, 422 or 500 as kube-apiserver: the last for many mistakes in a patch, too.
pub fn apply(
    schemas: &Schemas,
    resource: &Resource,
    current: &Object,
    patch: &Map<String, Value>,
    mut strict: Vec<String>,
    validation: FieldValidation,
) -> Result<(Object, Vec<String>), Status> {
    let meta = schemas.patch_meta(resource.schema).ok_or_else(|| Status::internal("no schema"))?;
    let mut patch = patch.clone();
    let merged = Merge::default().map(current.0.clone(), &mut patch, meta).map_err(|error| error.status())?;
    // The text is that of the patch as merging left it.
    let invalid = |why: String| {
        let text = go_text::map(&patch);
        Status::invalid("", "", "", &[FieldError::invalid_str("patch", &text, why)])
    };
    let converted = schemas.convert(resource.schema, merged).map_err(|error| invalid(error.0))?;
    let mut object = converted.object;
    // Upstream knows the kind by the Go type, whatever a patch says.
    object.0.insert("apiVersion".to_owned(), resource.gvk.api_version().into());
    object.0.insert("kind".to_owned(), resource.gvk.kind.into());
    if validation == FieldValidation::Ignore {
        return Ok((object, Vec::new()));
    }
    strict.extend(converted.strict);
    if validation == FieldValidation::Strict && !strict.is_empty() {
        return Err(invalid(strict_error(&strict)));
    }
    Ok((object, strict))
}
