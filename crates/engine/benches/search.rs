//! What it costs to find a tool among a thousand: to make the index, which happens once for each change of the tools, and to ask.
#![expect(clippy::expect_used, reason = "a benchmark that cannot go on should stop")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use turnwright_engine::tool_search::ToolIndex;

#[path = "../tests/many_tools/servers.rs"]
mod servers;

fn search(criterion: &mut Criterion) {
    let (tools, mut questions) = (servers::tools(), servers::questions());
    questions.extend(servers::held_out());
    assert!(questions.iter().all(|question| !question.right.is_empty()), "each has its answer");
    criterion.bench_function("index_1000_tools", |bencher| bencher.iter(|| ToolIndex::new(black_box(&tools))));
    let index = ToolIndex::new(&tools);
    let mut next = questions.iter().cycle();
    criterion.bench_function("search_1000_tools", |bencher| {
        bencher.iter(|| index.search(black_box(&next.next().expect("a cycle").words), 5, |_| true));
    });
}

criterion_group!(benches, search);
criterion_main!(benches);
