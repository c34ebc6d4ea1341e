//! What `--model` says.

use std::path::PathBuf;
use std::str::FromStr;

use super::{Echo, Model, ScriptError, Scripted};

/// A model, by the name that the command line gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSpec {
    /// `stub`: answers with the first source.
    Echo,
    /// `stub:scripted`: the script that comes with the built-in corpus.
    BuiltInScript,
    /// `stub:scripted=FILE`.
    Script(PathBuf),
}

/// A model's name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no model is called `{name}`; there are `stub`, `stub:scripted` and `stub:scripted=FILE`")]
pub struct UnknownModel {
    /// The name.
    pub name: String,
}

impl FromStr for ModelSpec {
    type Err = UnknownModel;

    fn from_str(name: &str) -> Result<Self, UnknownModel> {
        match name {
            "stub" => Ok(ModelSpec::Echo),
            "stub:scripted" => Ok(ModelSpec::BuiltInScript),
            _ => match name.strip_prefix("stub:scripted=") {
                Some(file) if !file.is_empty() => Ok(ModelSpec::Script(file.into())),
                _ => Err(UnknownModel { name: name.into() }),
            },
        }
    }
}

impl ModelSpec {
    /// Makes the model ready.
    ///
    /// # Errors
    ///
    /// [`ScriptError`] for a script that cannot be read or understood.
    pub fn open(&self) -> Result<Box<dyn Model>, ScriptError> {
        Ok(match self {
            ModelSpec::Echo => Box::new(Echo),
            ModelSpec::BuiltInScript => Box::new(Scripted::built_in()?),
            ModelSpec::Script(file) => Box::new(Scripted::load(file)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact() {
        assert_eq!("stub".parse(), Ok(ModelSpec::Echo));
        assert_eq!("stub:scripted".parse(), Ok(ModelSpec::BuiltInScript));
        assert_eq!("stub:scripted=a=b.json".parse(), Ok(ModelSpec::Script("a=b.json".into())));
        for wrong in ["", "Stub", "stub:", "stub:scripted=", "stub:other"] {
            assert!(wrong.parse::<ModelSpec>().is_err(), "{wrong}");
        }
    }
}
