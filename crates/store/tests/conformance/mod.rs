//! What every store must do, whatever it keeps its data in.
//!
//! A backend says how to open a store on its data; `conformance!` makes a test of every claim below for it.

mod conversations;
mod fixtures;
mod journal;
mod ledger;
mod records;
mod sharing;

use std::sync::Arc;

use async_trait::async_trait;
use turnwright_engine::Store;

/// Data that any number of stores can be open on. Each test has its own, empty at first.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    /// Opens a store as one more process would.
    async fn open(&self) -> Arc<dyn Store>;
}

macro_rules! claims {
    ($($module:ident::$claim:ident,)*) => {
        /// Every claim as a function, for the tests that `conformance!` makes.
        pub(crate) mod claim {
            use super::Backend;
            $(pub(crate) async fn $claim(backend: &dyn Backend) {
                super::$module::$claim(backend).await;
            })*
        }

        macro_rules! conformance {
            ($backend:expr) => {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    crate::conformance::claim::$claim(&$backend).await;
                })*
            };
        }
    };
}

claims! {
    conversations::a_conversation_is_found_as_it_was_created,
    conversations::a_conversation_is_created_once,
    conversations::an_update_replaces_title_and_settings_alone,
    conversations::what_is_not_there_is_gone,
    conversations::the_conversation_with_the_newest_entry_is_listed_first,
    conversations::a_list_shows_what_belongs_to_one_owner_alone,
    conversations::an_update_leaves_the_owner,
    conversations::pages_show_every_conversation_once,
    conversations::a_page_after_a_conversation_that_is_not_there_is_gone,
    conversations::a_deleted_conversation_leaves_nothing_and_takes_nothing_else,
    conversations::a_deleted_name_can_be_used_again,
    journal::every_kind_of_entry_comes_back_as_it_was_appended,
    journal::entries_that_were_taken_over_keep_their_times,
    journal::whether_something_is_taken_back_is_told_of_each_conversation,
    journal::a_conversation_begins_with_the_first_entries_of_another,
    journal::entries_are_read_from_any_place_and_in_part,
    journal::an_append_at_a_taken_place_conflicts_and_leaves_nothing,
    journal::an_append_beyond_the_next_place_conflicts,
    journal::an_append_without_entries_writes_its_records_alone,
    journal::many_appenders_leave_no_gap,
    ledger::what_a_call_came_to_is_spent_on_the_day_it_was_reserved,
    ledger::a_reservation_beyond_a_ceiling_is_refused_and_nothing_is_written,
    ledger::many_who_reserve_at_once_in_two_processes_stay_within_the_ceiling,
    ledger::a_reservation_whose_process_is_gone_counts_until_another_settles_it,
    ledger::a_reservation_takes_the_place_of_that_for_the_same_purpose,
    ledger::what_was_spent_outlives_its_conversation,
    records::a_conversation_begins_with_its_first_append,
    records::a_conversation_that_is_there_does_not_begin_again,
    records::a_title_comes_with_entries,
    records::the_index_of_open_turns_follows_the_journal,
    records::an_idempotency_key_keeps_its_first_answer,
    records::records_of_a_refused_append_are_not_written,
    sharing::a_store_sees_what_another_wrote,
    sharing::a_write_of_another_store_is_noticed,
    sharing::a_driver_is_alive_while_its_store_is_open,
    sharing::strange_names_are_not_alive,
    sharing::a_closed_store_says_so,
}
