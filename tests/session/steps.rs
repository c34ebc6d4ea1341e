//! What a session does, in which order, and what it tells of it.

use std::cell::RefCell;

use long_horizon::choice::Choice;
use long_horizon::digest;
use long_horizon::log::{End, Ending, Event};
use long_horizon::model::Echo;
use long_horizon::trace::{Actor, Trace};

use crate::bench::{Bench, Meanwhile, queued, script, worked};

#[test]
fn the_steps_of_an_answer_are_traced_in_order() {
    let bench = Bench::holding(&queued(&["Is a rename atomic?", "next"]));
    let model =
        script(r#"{"Is a rename atomic?": {"answer": {"text": "Yes.", "citations": ["a#1"]}}}"#);
    let mut trace = Trace::Memory(vec![]);
    worked(bench.run(&model, &mut trace).unwrap());
    let Trace::Memory(steps) = trace else { panic!() };
    let told: Vec<(Actor, &str, &str)> = steps
        .iter()
        .map(|s| {
            assert_eq!(s.kind, s.decided_by);
            (s.kind, s.title, s.detail.as_str())
        })
        .collect();
    assert_eq!(
        told,
        [
            (Actor::Code, "A trigger starts a session", "nobody asked for this run"),
            (Actor::Code, "Find sources for the first question in the queue", "a#1, a#2, b#1"),
            (
                Actor::Code,
                "Build the context from notes, not from a transcript",
                "0 notes from earlier sessions, none of their messages"
            ),
            (
                Actor::Model,
                "The model answers the question or flags it",
                r#"answer({"text":"Yes.","citations":["a#1"]})"#
            ),
            (Actor::Code, "Record the answer and keep a short note of it", "Yes."),
            (
                Actor::Code,
                "Write the checkpoint to disk",
                "1 question left in the queue, session 1"
            ),
        ]
    );
    assert!(steps[3].tokens_in > 0 && steps[3].tokens_out > 0);
    assert!(steps.iter().all(|s| s.kind == Actor::Model || s.tokens_in + s.tokens_out + s.ms == 0));
}

#[test]
fn a_flag_is_traced_as_handed_to_a_person() {
    let bench = Bench::holding(&queued(&["unrelated"]));
    let mut trace = Trace::Memory(vec![]);
    let done = worked(bench.run(&Echo, &mut trace).unwrap());
    assert!(matches!(done.choice, Choice::Flag { .. }));
    let Trace::Memory(steps) = trace else { panic!() };
    let titles: Vec<_> = steps.iter().map(|s| s.title).collect();
    assert_eq!(titles[4..], ["A person gets the question", "Write the checkpoint to disk"]);
    assert_eq!(steps[1].detail, "none");
    assert_eq!(
        bench.checkpoint().pending["unrelated"],
        "no section of the corpus matches the question"
    );
    assert!(bench.checkpoint().notes.is_empty());
}

#[test]
fn a_trace_file_holds_one_object_a_line() {
    let bench = Bench::holding(&queued(&["rename"]));
    let file = bench.folder.path().join("trace.jsonl");
    bench.run(&Echo, &mut Trace::to_file(&file).unwrap()).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    let keys: Vec<_> = lines[3].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["kind", "decided_by", "title", "detail", "tokens_in", "tokens_out", "ms"]);
    assert_eq!((&lines[3]["kind"], &lines[3]["decided_by"]), (&"model".into(), &"model".into()));
}

#[test]
fn the_model_gets_notes_sources_and_question_two_tools_and_no_earlier_message() {
    let bench = Bench::holding(&queued(&["Does a lock end?", "Is fsync durable?"]));
    let seen = RefCell::new(Vec::new());
    let model = Meanwhile::new(|request| {
        assert_eq!(request.max_tokens, 300);
        let names: Vec<_> = request.tools.iter().map(|t| t.name).collect();
        assert_eq!(names, ["answer", "flag_for_review"]);
        assert_eq!(
            request.tools[0].parameters["required"],
            serde_json::json!(["text", "citations"])
        );
        assert_eq!(request.tools[1].parameters["required"], serde_json::json!(["reason"]));
        seen.borrow_mut().push(request.messages.to_vec());
    });
    worked(bench.run(&model, &mut Trace::Off).unwrap());
    worked(bench.run(&model, &mut Trace::Off).unwrap());
    let seen = seen.borrow();
    assert_eq!(seen[1].len(), 2);
    let second = &seen[1][1].content;
    assert!(second.contains("- Does a lock end? -> A lock ends with its holder."), "{second}");
    assert!(second.contains("[b#1] Fsync\nAn fsync makes a file durable"), "{second}");
    assert!(second.ends_with("Question: Is fsync durable?"), "{second}");
    // The source of the first session is no source of the second; only its note is there.
    assert!(!second.contains("[a#2]"), "{second}");
    assert!(seen[0][1].content.contains("(none yet)"));
}

#[test]
fn start_and_end_are_logged_with_digests_around_the_model_call() {
    let before = queued(&["Is a rename atomic?"]);
    let bench = Bench::holding(&before);
    let model = Meanwhile::new(|_| {
        let events = bench.events();
        assert!(matches!(events.as_slice(), [Event::Start(_)]), "{events:?}");
    });
    worked(bench.run(&model, &mut Trace::Off).unwrap());
    let events = bench.events();
    let [Event::Start(start), Event::Decision(decision), Event::End(end)] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert_eq!(start.session, 1);
    assert_eq!(start.pid, std::process::id());
    assert_eq!(start.question, "Is a rename atomic?");
    assert_eq!(start.before, Some(digest::sha256(&before.encode())));
    assert_eq!((end.session, end.pid, &end.before), (1, start.pid, &start.before));
    assert_eq!(end.after, Some(digest::sha256(&std::fs::read(bench.path()).unwrap())));
    assert_eq!(end.choice, Ending::Answer);
    // All that the end says was on disk before the checkpoint, but for the time it took.
    assert_eq!(*end, End { ms: end.ms, ..decision.clone() });
    assert_eq!(end.cited[0].section, "a#1");
    assert_eq!(end.cited[0].sha256, Some(bench.corpus.get("a#1").unwrap().sha256()));
    assert!(end.tokens_in > 0 && end.tokens_out > 0);
}

#[test]
fn a_fresh_queue_has_no_digest_before() {
    let bench = Bench::new();
    let questions = ["rename".to_owned(), "other".to_owned()];
    worked(bench.session(&Echo, &questions).run(&mut Trace::Off).unwrap());
    let events = bench.events();
    assert!(matches!(&events[0], Event::Start(start) if start.before.is_none()), "{events:?}");
    assert_eq!(bench.checkpoint().queue, ["other"]);
}
