//! The file that the command carries: compressed lines, two for each definition: what is to be known of it, and itself.

use std::io::Write as _;

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::definitions::Definition;

/// Writes the file.
pub(crate) fn write(definitions: &[Definition]) -> Result<Vec<u8>> {
    let mut archive = GzEncoder::new(Vec::new(), Compression::best());
    for definition in definitions {
        let (object, spec) = (&definition.object, &definition.object["spec"]);
        let versions = spec["versions"].as_array();
        let has_status = |version: &&Value| !version["subresources"]["status"].is_null();
        let about = json!({
            "name": definition.name,
            "from": definition.from,
            "until": definition.until,
            "group": spec["group"],
            "kind": spec["names"]["kind"],
            "plural": spec["names"]["plural"],
            "versions": versions.into_iter().flatten().map(|version| &version["name"]).collect::<Vec<_>>(),
            "hasStatus": versions.into_iter().flatten().any(|version| has_status(&version)),
        });
        writeln!(archive, "{about}\n{object}")?;
    }
    Ok(archive.finish()?)
}
