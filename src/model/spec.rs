//! What `--model` says.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::remote::{Access, AccessError};
use super::{Echo, Model, Provider, Remote, ScriptError, Scripted};

/// A model, by the name that the command line gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSpec {
    /// A stub.
    Stub(StubSpec),
    /// `PROVIDER:MODEL`.
    Remote {
        /// Whose protocol the server speaks.
        provider: Provider,
        /// What the provider calls the model.
        model: String,
    },
}

/// A model that answers without a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StubSpec {
    /// `stub`: answers with the first source.
    Echo,
    /// `stub:scripted`: the script that comes with the built-in corpus.
    BuiltInScript,
    /// `stub:scripted=FILE`.
    Script(PathBuf),
}

/// A model's name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no model is called `{name}`; there are `stub`, `stub:scripted`, `stub:scripted=FILE`, `anthropic:ID`, `ollama:TAG` and `openai:ID`"
)]
pub struct UnknownModel {
    /// The name.
    pub name: String,
}

impl FromStr for ModelSpec {
    type Err = UnknownModel;

    fn from_str(name: &str) -> Result<Self, UnknownModel> {
        let unknown = || UnknownModel { name: name.to_owned() };
        let (kind, rest) = match name.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (name, None),
        };
        if kind == "stub" {
            return rest
                .map_or(Some(StubSpec::Echo), stub)
                .map(ModelSpec::Stub)
                .ok_or_else(unknown);
        }
        let provider = Provider::ALL.into_iter().find(|provider| provider.name() == kind);
        match (provider, rest) {
            (Some(provider), Some(model)) if !model.is_empty() => {
                Ok(ModelSpec::Remote { provider, model: model.to_owned() })
            }
            _ => Err(unknown()),
        }
    }
}

/// The stub that `stub:` leads to.
fn stub(name: &str) -> Option<StubSpec> {
    match name.strip_prefix("scripted")? {
        "" => Some(StubSpec::BuiltInScript),
        rest => rest
            .strip_prefix('=')
            .filter(|file| !file.is_empty())
            .map(|file| StubSpec::Script(file.into())),
    }
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelSpec::Stub(StubSpec::Echo) => f.write_str("stub"),
            ModelSpec::Stub(StubSpec::BuiltInScript) => f.write_str("stub:scripted"),
            ModelSpec::Stub(StubSpec::Script(file)) => {
                write!(f, "stub:scripted={}", file.display())
            }
            ModelSpec::Remote { provider, model } => write!(f, "{}:{model}", provider.name()),
        }
    }
}

/// A model of which everything is known that can be known without looking at any file.
#[derive(Debug)]
pub enum Prepared<'a> {
    /// A stub, whose script is yet to be read.
    Stub(&'a StubSpec),
    /// A provider's model, ready to be called.
    Remote(Box<Remote>),
}

impl ModelSpec {
    /// Takes the key of a provider from the environment. `base_url` names another server than the provider's own.
    ///
    /// # Errors
    ///
    /// [`AccessError`]; what a script says is looked at later, in [`Prepared::open`].
    pub fn prepare(
        &self,
        base_url: Option<&str>,
        retries: u32,
    ) -> Result<Prepared<'_>, AccessError> {
        match (self, base_url) {
            (ModelSpec::Stub(_), Some(_)) => Err(AccessError::NoServer { model: self.to_string() }),
            (ModelSpec::Stub(stub), None) => Ok(Prepared::Stub(stub)),
            (ModelSpec::Remote { provider, model }, _) => {
                let access = Access::from_env(*provider, base_url, retries)?;
                Ok(Prepared::Remote(Box::new(Remote::new(*provider, model, access))))
            }
        }
    }
}

impl Prepared<'_> {
    /// Makes the model ready.
    ///
    /// # Errors
    ///
    /// [`ScriptError`] for a script that cannot be read or understood.
    pub fn open(self) -> Result<Box<dyn Model>, ScriptError> {
        Ok(match self {
            Prepared::Stub(StubSpec::Echo) => Box::new(Echo),
            Prepared::Stub(StubSpec::BuiltInScript) => Box::new(Scripted::built_in()?),
            Prepared::Stub(StubSpec::Script(file)) => Box::new(Scripted::load(file)?),
            Prepared::Remote(remote) => remote,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact() {
        let remote = |provider, model: &str| ModelSpec::Remote { provider, model: model.into() };
        for (name, spec) in [
            ("stub", ModelSpec::Stub(StubSpec::Echo)),
            ("stub:scripted", ModelSpec::Stub(StubSpec::BuiltInScript)),
            ("stub:scripted=a=b.json", ModelSpec::Stub(StubSpec::Script("a=b.json".into()))),
            ("anthropic:claude-x", remote(Provider::Anthropic, "claude-x")),
            ("ollama:llama3.2:3b", remote(Provider::Ollama, "llama3.2:3b")),
            ("openai:org/model", remote(Provider::OpenAi, "org/model")),
        ] {
            assert_eq!(name.parse(), Ok(spec.clone()));
            assert_eq!(spec.to_string(), name);
        }
        for wrong in [
            "",
            "Stub",
            "stub:",
            "stub:scripted=",
            "stub:scripted2",
            "stub:other",
            "openai",
            "openai:",
            "OpenAI:x",
            ":x",
            "other:x",
        ] {
            assert!(wrong.parse::<ModelSpec>().is_err(), "{wrong}");
        }
    }
}
