//! Whatever bytes are in the file: they are refused by its name and stay as they are, or they load to a checkpoint that
//! is saved and loaded again as an equal one.

use std::fs;

use crashlab::fault::damage::{Original, Remains, Wish};
use long_horizon::checkpoint::{Answer, Checkpoint};
use long_horizon::store::{StoreError, StoreKind, Wait, open};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Folder, set};

fn holds_for(bytes: &[u8]) -> Result<(), TestCaseError> {
    for kind in [StoreKind::Json, StoreKind::Reference] {
        let folder = Folder::new();
        fs::write(folder.state(), bytes).unwrap();
        let store = open(kind, folder.state());
        match store.begin(Wait::Fail) {
            Err(error) => {
                prop_assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
                let named = error.to_string().contains(folder.state().to_str().unwrap());
                prop_assert!(named, "{error}");
                prop_assert!(store.read().is_err(), "read, but not opened for a change");
                prop_assert_eq!(fs::read(folder.state()).unwrap(), bytes);
                let known = set(["state.json", "state.json.lock"]);
                prop_assert!(folder.names().is_subset(&known), "{:?}", folder.names());
            }
            Ok(mut transaction) => {
                let loaded = transaction.loaded().unwrap().checkpoint.clone();
                transaction.replace(&loaded).unwrap();
                drop(transaction);
                let again = store.read().unwrap().unwrap().checkpoint;
                prop_assert_eq!(fs::read(folder.state()).unwrap(), loaded.encode());
                prop_assert_eq!(again, loaded);
            }
        }
    }
    Ok(())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,4}\\?", ".{0,6}", Just("a/b~ \"{\\".to_owned())]
}

fn checkpoint() -> impl Strategy<Value = Checkpoint> {
    let answer = (text(), vec(text(), 0..2));
    let answer = answer.prop_map(|(text, citations)| Answer { text, citations });
    (vec(text(), 0..3), vec(text(), 0..3), vec((text(), answer), 0..3), vec((text(), text()), 0..3))
        .prop_map(|(queue, notes, answers, pending)| Checkpoint {
            queue,
            notes,
            answers: answers.into_iter().collect(),
            pending: pending.into_iter().collect(),
            sessions_run: 7,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn of_any_kind(bytes in vec(prop_oneof![Just(b'{'), Just(b'"'), Just(b'}'), any::<u8>()], 0..40)) {
        holds_for(&bytes)?;
    }

    #[test]
    fn of_a_checkpoint_that_was_damaged_anywhere(
        checkpoint in checkpoint(),
        places in vec(any::<prop::sample::Index>(), 4),
    ) {
        let bytes = checkpoint.encode();
        let file = Original { bytes: &bytes, later: None };
        let damages = Wish::choose(&[Wish::All], file, usize::MAX).damages;
        for place in places {
            let damage = place.get(&damages);
            if let Ok(Remains::Bytes(damaged)) = damage.apply(file) {
                holds_for(&damaged).map_err(|error| TestCaseError::fail(format!("{damage}: {error}")))?;
            }
        }
    }
}
