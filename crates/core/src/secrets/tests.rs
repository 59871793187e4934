use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::json;

use super::*;

const KEY: &str = "sk-live/7Yq+0pZ\"x9Rt\\Lm4";
const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fn secrets() -> Secrets {
    Secrets::new([KEY, TOKEN])
}

/// No piece of a secret that is long enough to matter is left in the text.
fn assert_gone(text: &str) {
    for secret in [KEY, TOKEN] {
        let piece = secret.len().div_ceil(2);
        let characters: Vec<char> = secret.chars().collect();
        for window in characters.windows(piece) {
            let window: String = window.iter().collect();
            assert!(!text.contains(&window), "{window} is in {text}");
        }
    }
}

fn hides(text: &str) -> String {
    let secrets = secrets();
    let hidden = secrets.hide(text).into_owned();
    assert!(hidden.contains(HIDDEN), "{text} stays as it is");
    assert_gone(&hidden);
    assert!(!secrets.are_in(&hidden), "{hidden}");
    hidden
}

#[test]
fn a_secret_is_hidden_wherever_it_stands_and_nothing_else() {
    assert_eq!(hides(&format!("key={TOKEN}, and {KEY}!")), "key=[secret], and [secret]!");
    assert_eq!(hides(&format!("é{TOKEN}{TOKEN}é")), "é[secret]é");
    for text in ["", "a text without", "ghp_16C7", "sk-live/", "[secret]"] {
        assert!(matches!(secrets().hide(text), Cow::Borrowed(same) if same == text), "{text}");
    }
    assert_eq!(Secrets::new(["short", "  ", ""]).hide("short"), "short");
    assert!(Secrets::new(["short"]).is_empty());
}

#[test]
fn half_of_one_is_hidden_from_either_end_and_from_its_middle() {
    for secret in [KEY, TOKEN] {
        let half = secret.len().div_ceil(2);
        for begin in 0..=secret.len() - half {
            let piece = secret.get(begin..begin + half).unwrap();
            assert_eq!(secrets().hide(&format!("<{piece}>")), "<[secret]>", "{piece}");
        }
        assert_eq!(secrets().hide(&format!("<{}>", secret.get(..7).unwrap())).len(), 9);
    }
}

#[test]
fn base64_is_known_wherever_the_secret_begins_in_it() {
    for secret in [KEY, TOKEN] {
        for before in ["", "a", "ab", "abc", "user:", "Bearer "] {
            for after in ["", "z", "zz", "\n"] {
                let whole = format!("{before}{secret}{after}");
                for encoded in [STANDARD.encode(&whole), URL_SAFE.encode(&whole)] {
                    hides(&format!("it is {encoded}."));
                    let wrapped: Vec<String> =
                        encoded.as_bytes().chunks(11).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
                    hides(&wrapped.join("\n"));
                }
            }
        }
        let half = secret.get(3..3 + secret.len().div_ceil(2)).unwrap();
        for before in ["", "a", "ab"] {
            let encoded = STANDARD.encode(format!("{before}{half}"));
            assert!(secrets().are_in(&encoded), "{before}{half}: {encoded}");
        }
    }
}

#[test]
fn hexadecimal_is_known_in_both_cases_and_with_spaces() {
    let hex = |upper: bool, between: &str| {
        let digits = TOKEN.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
        digits.collect::<Vec<_>>().join(between)
    };
    for text in [hex(true, ""), hex(false, ""), hex(false, " "), hex(true, "\n")] {
        assert_eq!(hides(&text), HIDDEN);
    }
}

#[test]
fn escapes_of_any_kind_and_mixture_are_read() {
    let each = |escape: &dyn Fn(char) -> String| KEY.chars().map(escape).collect::<String>();
    let forms = [
        each(&|char| format!("%{:02X}", u32::from(char))),
        each(&|char| format!("%{:02x}", u32::from(char))),
        each(&|char| if char.is_ascii_alphanumeric() { char.to_string() } else { format!("%{:02X}", u32::from(char)) }),
        each(&|char| format!("\\u{:04x}", u32::from(char))),
        each(&|char| format!("\\u{{{:x}}}", u32::from(char))),
        each(&|char| format!("\\x{:02x}", u32::from(char))),
        each(&|char| format!("&#{};", u32::from(char))),
        each(&|char| format!("&#x{:x};", u32::from(char))),
        each(&|char| {
            if "aeiou/+".contains(char) {
                format!("\\u{:04X}", u32::from(char))
            } else {
                format!("{char:?}").trim_matches('\'').replace("\\\"", "\"")
            }
        }),
        serde_json::to_string(KEY).unwrap(),
        serde_json::to_string(&serde_json::to_string(&json!({"key": KEY})).unwrap()).unwrap(),
        KEY.replace('/', "\\/").replace('"', "\\\""),
    ];
    for form in forms {
        hides(&format!("before {form} after"));
    }
    // JSON that was hidden in is JSON still.
    let text = serde_json::to_string(&json!({"a": KEY, "b": [TOKEN]})).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&hides(&text)).unwrap(), json!({"a": HIDDEN, "b": [HIDDEN]}));
    let base64_in_url = STANDARD.encode(KEY).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    hides(&base64_in_url);
}

#[test]
fn words_that_are_part_of_a_secret_stay_words() {
    let secrets = Secrets::new(["password123", "correct-horse-battery-staple-9"]);
    for text in ["the password is wrong", "a correct-horse", "battery and horse"] {
        assert_eq!(secrets.hide(text), text);
    }
    assert_eq!(secrets.hide("password123 and correct-horse-battery"), "[secret] and [secret]");
}

#[test]
fn a_long_secret_is_known_by_a_short_piece() {
    let long: String = (0..4_000_u32).map(|at| char::from(b'!' + u8::try_from(at * at % 89).unwrap_or(0))).collect();
    let secrets = Secrets::new([long.as_str()]);
    assert!(secrets.are_in(&format!("a {} b", long.get(1_000..1_030).unwrap())));
}

#[test]
fn a_huge_text_is_looked_at_over_its_stretches() {
    let escaped = serde_json::to_string(KEY).unwrap();
    let before = "x\\n".repeat(STRETCH / 3 - 3);
    for shift in 0..8 {
        let text = format!("{before}{}{escaped}{before}", " ".repeat(shift));
        let hidden = secrets().hide(&text).into_owned();
        assert!(hidden.contains(HIDDEN) && !hidden.contains("7Yq"), "shifted by {shift}");
    }
}

/// A text in pieces of every size.
fn streamed(text: &str, size: usize) -> (String, usize) {
    let (secrets, mut stream, mut told, mut most) = (secrets(), SecretStream::default(), String::new(), 0);
    let characters: Vec<char> = text.chars().collect();
    let mut given = 0;
    for piece in characters.chunks(size) {
        let piece: String = piece.iter().collect();
        given += piece.len();
        told.push_str(&stream.push(&secrets, &piece));
        if !text.contains("sk-") && !text.contains("ghp") {
            most = most.max(given - told.len());
        }
    }
    told.push_str(&stream.finish(&secrets));
    (told, most)
}

#[test]
fn a_stream_hides_what_comes_in_pieces_of_any_size() {
    let escaped = serde_json::to_string(KEY).unwrap();
    let base64 = STANDARD.encode(format!("u:{TOKEN}"));
    let percent = KEY.bytes().fold(String::new(), |all, byte| all + &format!("%{byte:02X}"));
    for text in [format!("a {TOKEN} b {KEY} c"), format!("x{escaped}y"), format!("Basic {base64} z"), format!("?k={percent}&l")]
    {
        for size in 1..=text.len() {
            let (told, _) = streamed(&text, size);
            assert_eq!(told, secrets().hide(&text), "in pieces of {size}");
        }
    }
}

#[test]
fn a_stream_holds_back_only_what_could_become_a_secret() {
    let (told, most) = streamed("What a nice day: 100 % of it, & more \\o/ all along. Nothing to see.", 1);
    assert_eq!(told, "What a nice day: 100 % of it, & more \\o/ all along. Nothing to see.");
    assert!(most <= 4, "{most} bytes were held back");
}

#[test]
fn where_a_text_stands_still_its_last_word_is_passed_on() {
    let secrets = secrets();
    for text in ["n58 n59 ", "It is 4", "said g", "50 %"] {
        let mut stream = SecretStream::default();
        let first = stream.push(&secrets, text);
        assert_ne!(first, text, "nothing of it is held back");
        assert_eq!(first + &stream.stand_still(), text);
        assert_eq!((stream.has_early(), stream.stand_still()), (false, String::new()), "{text}");
        assert_eq!(stream.push(&secrets, " and more. ") + &stream.finish(&secrets), " and more. ", "{text}");
    }
}

#[test]
fn wherever_a_text_stands_still_no_more_than_4_bytes_of_a_secret_are_passed_on() {
    let base64 = STANDARD.encode(KEY);
    for secret in [KEY, TOKEN, &base64] {
        let text = format!("a {secret}! b");
        for at in 0..=text.len() {
            for every in [at.max(1), 1] {
                let (secrets, mut stream, mut told) = (secrets(), SecretStream::default(), String::new());
                for (sent, char) in text.char_indices() {
                    told.push_str(&stream.push(&secrets, char.encode_utf8(&mut [0; 4])));
                    if (sent + 1) % every == 0 && sent < at {
                        told.push_str(&stream.stand_still());
                    }
                }
                told.push_str(&stream.finish(&secrets));
                let before = told.strip_suffix("[secret]! b").unwrap_or_else(|| panic!("{told}")).strip_prefix("a ").unwrap();
                assert!(before.len() <= 4 && secret.starts_with(before), "{told}");
            }
        }
    }
}

#[test]
fn values_and_results_are_walked_through() {
    let secrets = secrets();
    let mut value = json!({"a": [1, KEY, {TOKEN: null}], "b": true});
    secrets.hide_in_value(&mut value);
    assert_eq!(value, json!({"a": [1, HIDDEN, {HIDDEN: null}], "b": true}));
    let mut number = json!({"pin": 1_234_567_890_u64});
    Secrets::new(["1234567890"]).hide_in_value(&mut number);
    assert_eq!(number, json!({"pin": HIDDEN}));
    let (first, second) = TOKEN.split_at(7);
    let mut blocks = vec![
        crate::ContentBlock::text(first),
        crate::ContentBlock::text(second),
        crate::ContentBlock::Image { data: STANDARD.encode(format!("bytes {TOKEN} bytes")), mime_type: "image/png".into() },
    ];
    secrets.hide_in_content(&mut blocks);
    let text = serde_json::to_string(&blocks).unwrap();
    assert_gone(&text);
    assert!(!secrets.are_in(&text) && text.contains(HIDDEN), "{text}");
}

#[test]
fn nothing_is_shown_of_them() {
    let told = format!("{:?}", secrets());
    assert!(told.starts_with("Secrets { forms: ") && !told.contains("ghp"), "{told}");
}
