//! The models that are asked in turn where one is not available.
//!
//! A provider's `fallback` holds for all its models. Where a model of another provider is asked, that one's own list comes
//! after; so lists that lead back to where they began are a mistake.

use turnwright_core::ModelRef;

/// The models after `model`: the list of its provider, then the lists of the providers in it. None comes twice.
pub(crate) fn chain<'a>(model: &ModelRef, list_of: impl Fn(&str) -> &'a [ModelRef]) -> Vec<ModelRef> {
    let mut chain: Vec<ModelRef> = Vec::new();
    let mut looked_at: Vec<String> = Vec::new();
    let mut next = model.clone();
    let mut at = 0;
    loop {
        if !looked_at.iter().any(|name| name == next.provider()) {
            looked_at.push(next.provider().to_owned());
            for model_of_list in list_of(next.provider()) {
                if model_of_list != model && !chain.contains(model_of_list) {
                    chain.push(model_of_list.clone());
                }
            }
        }
        let Some(after) = chain.get(at) else { return chain };
        next = after.clone();
        at += 1;
    }
}

/// The names on the way from `provider` through the lists back to it, where there is one; itself at both ends.
pub(crate) fn way_back<'a>(provider: &'a str, list_of: impl Fn(&str) -> &'a [ModelRef]) -> Option<Vec<&'a str>> {
    let mut ways: Vec<Vec<&str>> = vec![vec![provider]];
    let mut seen: Vec<&str> = Vec::new();
    while let Some(way) = ways.pop() {
        let Some(last) = way.last().copied() else { continue };
        // Another model of the same provider is no way anywhere.
        for next in list_of(last).iter().map(ModelRef::provider).filter(|next| *next != last) {
            let longer: Vec<&str> = way.iter().copied().chain([next]).collect();
            if next == provider {
                return Some(longer);
            }
            if !seen.contains(&next) {
                seen.push(next);
                ways.push(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lists of `a`, `b` and `c`; `c`'s is what a test says.
    fn lists(c: &[&str]) -> impl Fn(&str) -> &'static [ModelRef] {
        let list = |models: &[&str]| models.iter().map(|model| model.parse().unwrap()).collect::<Vec<ModelRef>>().leak();
        let (a, b, c): (&'static [ModelRef], &'static [ModelRef], &'static [ModelRef]) =
            (list(&["a/small", "b/m", "d/m"]), list(&["c/m"]), list(c));
        move |name| match name {
            "a" => a,
            "b" => b,
            "c" => c,
            _ => &[],
        }
    }

    fn chain_of(model: &str) -> Vec<String> {
        chain(&model.parse().unwrap(), lists(&[])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_chain_is_the_list_of_the_provider_and_then_the_lists_of_those_in_it() {
        assert_eq!(chain_of("a/large"), ["a/small", "b/m", "d/m", "c/m"]);
        assert_eq!(chain_of("a/small"), ["b/m", "d/m", "c/m"]);
        assert_eq!(chain_of("b/m"), ["c/m"]);
        assert!(chain_of("d/m").is_empty());
    }

    #[test]
    fn a_way_back_is_found_in_whatever_order_providers_are_written() {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let models: Vec<Vec<ModelRef>> = (0..16_usize)
            .map(|set| (0..4).filter(|at| set >> at & 1 == 1).map(|at| ModelRef::new(NAMES[at], "m")).collect())
            .collect();
        for graph in 0..1_usize << 16 {
            let list = |at: usize| graph >> (4 * at) & 15;
            let lists = |name: &str| &*models[list(NAMES.iter().position(|known| *known == name).unwrap())];
            // Whoever leads nowhere but to itself or to such is on no way back.
            let mut leads_on = 15;
            for _ in NAMES {
                leads_on = (0..4).filter(|at| list(*at) & leads_on & !(1 << at) != 0).fold(0, |all, at| all | 1 << at);
            }
            let is_found = NAMES.iter().any(|name| way_back(name, lists).is_some());
            assert_eq!(is_found, leads_on != 0, "{graph:016b}");
        }
    }

    #[test]
    fn a_model_of_the_same_provider_is_no_way_back() {
        assert_eq!(way_back("a", lists(&[])), None);
        assert_eq!(way_back("a", lists(&["a/m"])), Some(vec!["a", "b", "c", "a"]));
    }
}
