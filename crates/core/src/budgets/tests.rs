use super::*;
use crate::Seq;

const PRICES: Prices = Prices { input: 2.0, cached_input: Some(0.2), cache_write: Some(2.5), output: 10.0, long_prompts: None };

fn estimate(input_tokens: u64, output_tokens: u64, prices: Option<Prices>) -> Estimate {
    Estimate { purpose: Purpose::Answer, model: ModelRef::new("p", "m"), input_tokens, output_tokens, prices }
}

fn budget(most: Most, spent: Amount, reserved: Amount) -> Budgeted {
    Budgeted { kind: BudgetKind::UserDay, most, spent, reserved, resets_at_ms: Some(7) }
}

fn tokens(most: u64, spent: u64, reserved: u64) -> Budgeted {
    let of = |tokens| Amount { tokens, nano_usd: 0 };
    budget(Most { tokens: Some(most), nano_usd: None }, of(spent), of(reserved))
}

fn dollars_of(most: u64, spent: u64, reserved: u64) -> Budgeted {
    let of = |nano_usd| Amount { tokens: 0, nano_usd };
    budget(Most { tokens: None, nano_usd: Some(most) }, of(spent), of(reserved))
}

#[test]
fn a_call_is_asked_for_as_long_an_answer_as_every_budget_has_room_for() {
    let prompt = 1_000;
    let usd = NANO_USD / 1_000;
    let rows = [
        ("no budget", vec![], Some(4_000)),
        ("room for all", vec![tokens(5_000, 0, 0)], Some(4_000)),
        ("a token less", vec![tokens(5_000, 1, 0)], Some(3_999)),
        ("what others have reserved counts", vec![tokens(5_000, 500, 500)], Some(3_000)),
        ("the least", vec![tokens(1_256, 0, 0)], Some(256)),
        ("less than the least", vec![tokens(1_255, 0, 0)], None),
        ("spent beyond it", vec![tokens(1_000, 2_000, 0)], None),
        // The prompt is 2.5 thousandths of a dollar where it is written to a cache, a token of the answer a hundred-thousandth.
        ("room for all of it in dollars", vec![dollars_of(43 * usd, 0, 0)], Some(4_000)),
        ("half in dollars", vec![dollars_of(43 * usd, 10 * usd, 10 * usd)], Some(2_050)),
        ("nothing in dollars", vec![dollars_of(3 * usd, 0, 0)], None),
        ("the tightest", vec![tokens(5_000, 0, 0), dollars_of(23 * usd, 0, 0), tokens(3_500, 0, 0)], Some(2_050)),
    ];
    for (name, budgets, expected) in rows {
        let reserved = reserve(&budgets, &estimate(prompt, 4_000, Some(PRICES)));
        assert_eq!(reserved.as_ref().ok().map(|reserved| reserved.output.tokens), expected, "{name}: {reserved:?}");
        let Ok(reserved) = reserved else { continue };
        assert_eq!(reserved.lowered_by.is_some(), reserved.output.tokens < 4_000, "{name}");
        for budget in budgets {
            let all = budget.spent.plus(budget.reserved).plus(reserved.amount());
            assert!(budget.most.allows(all), "{name}: {all:?} is over {budget:?}");
        }
    }
}

#[test]
fn an_answer_that_should_be_short_is_asked_for_with_less_than_the_least() {
    assert_eq!(reserve(&[tokens(1_010, 0, 0)], &estimate(1_000, 10, None)).unwrap().output.tokens, 10);
    assert!(reserve(&[tokens(1_009, 0, 0)], &estimate(1_000, 10, None)).is_err());
}

#[test]
fn a_refusal_says_which_budget_and_what_it_lacks() {
    let stop = reserve(&[tokens(2_000, 1_000, 200)], &estimate(1_000, 4_000, None)).unwrap_err();
    let expected = BudgetStop {
        budget: BudgetKind::UserDay,
        unit: BudgetUnit::Tokens,
        limit: 2_000,
        spent: 1_000,
        reserved: 200,
        needed: Some(1_256),
        resets_at_ms: Some(7),
    };
    assert_eq!(stop, expected);
    // A limit in money for a model whose price nobody knows is not as good as none.
    let stop = reserve(&[dollars_of(NANO_USD, 0, 0)], &estimate(1, 1, None)).unwrap_err();
    assert_eq!(
        stop,
        BudgetStop { unit: BudgetUnit::NanoUsd, limit: NANO_USD, spent: 0, reserved: 0, needed: None, ..expected }
    );
    assert!(stop.told().contains("the price of the model is not known"), "{}", stop.told());
    let free = Prices { input: 0.0, cached_input: None, cache_write: None, output: 0.0, long_prompts: None };
    assert_eq!(reserve(&[dollars_of(1, 1, 0)], &estimate(1, 1, Some(free))).unwrap().amount().nano_usd, 0);
}

#[test]
fn a_budget_that_does_not_suffice_is_told_in_plain_words() {
    let stop = BudgetStop {
        budget: BudgetKind::UserMonth,
        unit: BudgetUnit::NanoUsd,
        limit: 20 * NANO_USD,
        spent: 19_876_543_210,
        reserved: 0,
        needed: Some(130_000_000),
        resets_at_ms: Some(20_788 * 86_400_000),
    };
    let expected = "your budget for the month (`budgets.user_month`) is 20.00 USD, of which 19.87 USD are spent; the next question to \
                    the model may take 0.13 USD. It begins anew on 2026-12-01 at 00:00 UTC";
    assert_eq!(stop.told(), expected);
    let turn = BudgetStop {
        budget: BudgetKind::Turn,
        unit: BudgetUnit::Tokens,
        limit: 10,
        spent: 4,
        reserved: 3,
        needed: Some(9),
        resets_at_ms: None,
    };
    let expected = "this turn's budget (`budgets.turn`) is 10 tokens, of which 4 tokens are spent and 3 tokens kept for calls that are \
                    under way; the next question to the model may take 9 tokens. A retry, and another message, have a budget of \
                    their own";
    assert_eq!(turn.told(), expected);
}

#[test]
fn money_is_told_with_as_many_digits_as_it_takes() {
    let rows = [
        (0, "0.00 USD"),
        (NANO_USD, "1.00 USD"),
        (12_345_678_900, "12.34 USD"),
        (500_000_000, "0.50 USD"),
        (123_456_789, "0.123 USD"),
        (1_234_567, "0.00123 USD"),
        (1_200_000, "0.0012 USD"),
        (7, "0.000000007 USD"),
    ];
    for (nano_usd, expected) in rows {
        assert_eq!(dollars(nano_usd), expected);
    }
}

#[test]
fn an_amount_of_money_is_no_less_than_it_is() {
    for (usd, expected) in
        [(0.5, 500_000_000), (1e-9, 1), (1.5e-9, 2), (0.0, 0), (-1.0, 0), (f64::NAN, 0), (0.1 + 0.2, 300_000_000)]
    {
        assert_eq!(nano_usd(usd), expected, "{usd}");
    }
}

#[test]
fn what_a_call_came_to_is_what_its_provider_says_and_else_what_can_be_seen() {
    let reserved = Reserved {
        purpose: Purpose::Answer,
        model: ModelRef::new("p", "m"),
        input: Amount { tokens: 100, nano_usd: 1_000 },
        output: Amount { tokens: 50, nano_usd: 5_000 },
        lowered_by: None,
        driver: None,
    };
    let usage = |input_tokens, output_tokens, cost_usd| Usage { input_tokens, output_tokens, cost_usd, ..Usage::default() };
    let nothing = Usage::default();
    let rows = [
        ("told", CallEnd::Whole, usage(Some(90), Some(20), Some(2e-6)), 3, (110, 2_000)),
        ("told without a price", CallEnd::Whole, usage(Some(90), Some(20), None), 3, (110, 900 + 2_000)),
        ("more than was reserved", CallEnd::Whole, usage(Some(200), Some(50), None), 3, (250, 2_000 + 5_000)),
        ("nothing told", CallEnd::Whole, nothing, 31, (111, 1_000 + 1_100)),
        ("nothing told of a long answer", CallEnd::Whole, nothing, 3_000, (150, 6_000)),
        ("cut off", CallEnd::CutOff, usage(Some(90), Some(1), None), 30, (100, 900 + 1_000)),
        ("cut off without a word", CallEnd::CutOff, nothing, 30, (110, 1_000 + 1_000)),
        ("failed", CallEnd::Failed, nothing, 0, (0, 0)),
        ("failed and told", CallEnd::Failed, usage(Some(100), None, None), 0, (100, 1_000)),
        ("dropped", CallEnd::Dropped, nothing, 0, (100, 1_000)),
        ("lost", CallEnd::Lost, nothing, 0, (150, 6_000)),
    ];
    for (name, end, usage, said, (tokens, nano_usd)) in rows {
        assert_eq!(reserved.came_to(end, &usage, said), Amount { tokens, nano_usd }, "{name}");
    }
    let unpriced = Reserved { input: Amount { tokens: 0, nano_usd: 0 }, ..reserved };
    assert_eq!(unpriced.came_to(CallEnd::Whole, &usage(Some(9), Some(1), None), 0), Amount { tokens: 10, nano_usd: 100 });
}

#[test]
fn the_periods_of_budgets_are_days_and_months() {
    let at_ms = 20_780 * 86_400_000 + 5;
    let ends = |kind: BudgetKind| kind.period(at_ms).map(|period| period.ends_at_ms() / 86_400_000);
    assert_eq!(ends(BudgetKind::Turn), None);
    assert_eq!(ends(BudgetKind::Conversation), None);
    assert_eq!(ends(BudgetKind::UserDay), Some(20_781));
    assert_eq!(ends(BudgetKind::Day), Some(20_781));
    assert_eq!(ends(BudgetKind::UserMonth), Some(20_788));
    assert_eq!(
        Purpose::Sampling(ElicitationId { call: crate::CallId { message: Seq::FIRST, index: 0 }, index: 2 }).key(),
        "question_1_0_2"
    );
}
