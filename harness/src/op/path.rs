//! Paths and names in serialised form: text where they are UTF-8, and `{"bytes": [...]}` where they are not, so that none is
//! lost. For `#[serde(with = ...)]`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name that need not be UTF-8.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Name {
    Text(String),
    Other { bytes: Vec<u8> },
}

impl From<&OsStr> for Name {
    fn from(name: &OsStr) -> Name {
        match name.to_str() {
            Some(text) => Name::Text(text.to_owned()),
            None => Name::Other { bytes: name.as_bytes().to_vec() },
        }
    }
}

impl From<Name> for OsString {
    fn from(name: Name) -> OsString {
        match name {
            Name::Text(text) => text.into(),
            Name::Other { bytes } => OsString::from_vec(bytes),
        }
    }
}

pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => to.serialize_str(text),
        None => Name::from(path.as_os_str()).serialize(to),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Name::deserialize(from).map(|name| OsString::from(name).into())
}

/// The same for paths that need not be there.
pub(crate) mod option {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_ref().map(|path| Name::from(path.as_os_str())).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        let name = Option::<Name>::deserialize(from)?;
        Ok(name.map(|name| OsString::from(name).into()))
    }
}

/// The same for lists of paths.
pub(crate) mod list {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| Name::from(path.as_os_str())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let names = Vec::<Name>::deserialize(from)?;
        Ok(names.into_iter().map(|name| OsString::from(name).into()).collect())
    }
}
