//! What holds of every queue, whatever models and people decide.

use long_horizon::checkpoint::Checkpoint;
use long_horizon::choice::Choice;
use long_horizon::log::ReadLog;
use long_horizon::queue::{self, MAX_NOTES, NOTE_CODE_POINTS};
use proptest::prelude::*;

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    Session(Choice),
    /// A person decides the pending question at this place, if there are so many.
    Resolve(usize, String),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (".{0,100}", prop::collection::vec("[a-z]{1,3}#[1-9]", 0..3))
            .prop_map(|(text, citations)| Step::Session(Choice::Answer { text, citations })),
        ".{0,20}".prop_map(|reason| Step::Session(Choice::Flag { reason })),
        (0_usize..4, ".{1,100}").prop_map(|(at, note)| Step::Resolve(at, note)),
    ];
    prop::collection::vec(step, 0..30)
}

/// How often a question stands in the checkpoint.
fn places(checkpoint: &Checkpoint, question: &String) -> usize {
    checkpoint.queue.iter().filter(|q| *q == question).count()
        + usize::from(checkpoint.answers.contains_key(question))
        + usize::from(checkpoint.pending.contains_key(question))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_question_is_lost_or_doubled_and_notes_are_beginnings_of_answers(
        questions in prop::collection::hash_set(".{0,12}", 0..10),
        steps in steps(),
    ) {
        let questions: Vec<String> = questions.into_iter().collect();
        let mut checkpoint = Checkpoint::fresh(questions.clone());
        let mut sessions = 0;
        for step in steps {
            let next = match step {
                Step::Session(choice) => queue::apply(&checkpoint, &choice).ok().inspect(|_| sessions += 1),
                Step::Resolve(at, note) => {
                    let question = checkpoint.pending.keys().nth(at).cloned();
                    question.map(|q| queue::resolve(&checkpoint, &q, &note).unwrap())
                }
            };
            checkpoint = next.unwrap_or(checkpoint);
            for question in &questions {
                prop_assert_eq!(places(&checkpoint, question), 1, "{:?}", question);
            }
            prop_assert_eq!(checkpoint.sessions_run, sessions);
            prop_assert!(checkpoint.notes.len() <= MAX_NOTES);
            prop_assert_eq!(checkpoint.notes.len(), checkpoint.answers.len().min(MAX_NOTES));
            for note in &checkpoint.notes {
                prop_assert!(checkpoint.answers.iter().any(|(q, a)| *note == queue::note(q, &a.text)));
            }
            // What is left of the queue is in its order.
            let left: Vec<_> = questions.iter().filter(|q| checkpoint.queue.contains(q)).cloned().collect();
            prop_assert_eq!(&checkpoint.queue, &left);
        }
    }

    #[test]
    fn a_note_is_its_answers_first_code_points(text in ".{0,200}") {
        let note = queue::note("q", &text);
        let beginning = note.strip_prefix("q -> ").unwrap();
        prop_assert!(text.starts_with(beginning));
        prop_assert_eq!(beginning.chars().count(), text.chars().count().min(NOTE_CODE_POINTS));
    }

    #[test]
    fn any_bytes_are_read_as_a_log_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let log = ReadLog::parse(&bytes);
        prop_assert!(log.entries.is_empty());
        prop_assert!(log.torn_bytes <= bytes.len());
    }
}
