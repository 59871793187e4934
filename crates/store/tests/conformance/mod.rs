//! What every store must do, whatever it keeps its data in.
//!
//! A backend says how to open a store on its data; `conformance!` makes a test of every claim about journals for it, and
//! `full_conformance!` of every claim about the other ports.

pub(crate) mod accounts;
pub(crate) mod artifacts;
mod conversations;
pub(crate) mod documents;
pub(crate) mod fixtures;
mod journal;
pub(crate) mod knowledge;
mod ledger;
pub(crate) mod locks;
pub(crate) mod rates;
mod records;
pub(crate) mod search;
mod sharing;
pub(crate) mod upkeep;

use std::sync::Arc;

use async_trait::async_trait;
use turnwright_engine::Store;
use turnwright_store::Storage;

/// Data that any number of stores can be open on. Each test has its own, empty at first.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    /// Opens a store as one more process would.
    async fn open(&self) -> Arc<dyn Store>;
}

/// The same, for a store that fills every port.
#[async_trait]
pub(crate) trait Full: Send + Sync {
    /// Opens a store as one more process would.
    async fn open_all(&self) -> Arc<dyn Storage>;

    /// Whether what is done may not be heard of.
    fn loses_answers(&self) -> bool {
        false
    }
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
                    // None says why.
                    let Some(backend) = $backend else { return };
                    crate::conformance::claim::$claim(&backend).await;
                })*
            };
        }
    };
}

claims! {
    conversations::a_conversation_is_found_as_it_was_created,
    conversations::questions_that_nobody_looks_after_hold_up_no_other,
    conversations::a_conversation_is_created_once,
    conversations::an_update_replaces_title_and_settings_alone,
    conversations::an_update_of_what_was_changed_since_writes_nothing,
    conversations::what_was_changed_since_is_not_deleted,
    conversations::another_of_the_name_is_neither_changed_nor_deleted_for_the_one_that_was_meant,
    conversations::who_looks_how_far_a_conversation_is_is_told_what_is_chosen_where_it_is_other,
    conversations::what_is_not_there_is_gone,
    conversations::the_conversation_with_the_newest_entry_is_listed_first,
    conversations::a_list_shows_what_belongs_to_one_owner_alone,
    conversations::an_update_leaves_the_owner,
    conversations::pages_show_every_conversation_once,
    conversations::those_that_are_pinned_are_found_however_old_they_are,
    conversations::a_page_goes_on_behind_what_is_changed_or_gone_meanwhile,
    conversations::a_deleted_conversation_leaves_nothing_and_takes_nothing_else,
    conversations::a_deleted_name_can_be_used_again,
    conversations::what_was_meant_for_a_deleted_conversation_is_not_stored_in_the_next_of_its_name,
    journal::every_kind_of_entry_comes_back_as_it_was_appended,
    journal::entries_that_were_taken_over_keep_their_times,
    journal::whether_something_is_taken_back_is_told_of_each_conversation,
    journal::a_conversation_begins_with_the_first_entries_of_another,
    journal::what_copies_begin_with_stays_whichever_of_them_is_deleted,
    journal::a_copy_takes_back_what_its_beginning_does,
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
    records::an_answer_is_kept_without_entries_and_goes_with_its_conversation,
    records::the_index_of_open_turns_follows_the_journal,
    records::no_more_turns_of_a_user_run_than_may_whoever_begins_them,
    records::an_idempotency_key_keeps_its_first_answer,
    records::the_last_of_the_idempotency_keys_between_two_is_found,
    records::records_of_a_refused_append_are_not_written,
    sharing::a_store_sees_what_another_wrote,
    sharing::a_write_of_another_store_is_noticed,
    sharing::a_driver_is_alive_while_its_store_is_open,
    sharing::strange_names_are_not_alive,
    sharing::a_closed_store_says_so,
}

macro_rules! full_claims {
    ($($module:ident::$claim:ident,)*) => {
        #[allow(unused_macros, reason = "a store that fills one port alone has no use for it")]
        macro_rules! full_conformance {
            ($backend:expr) => {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    // None says why.
                    let Some(backend) = $backend else { return };
                    crate::conformance::$module::$claim(&backend).await;
                })*
            };
        }
    };
}

full_claims! {
    accounts::whoever_sits_at_the_machine_is_there,
    accounts::no_two_users_have_one_name,
    accounts::an_identity_is_one_user,
    accounts::a_credential_comes_with_its_user_and_goes_with_it,
    accounts::a_user_is_changed_by_whoever_saw_what_they_are,
    accounts::the_last_admin_stays_also_where_two_take_the_role_of_each_other,
    accounts::what_goes_with_a_credential_is_removed_with_it_and_once,
    accounts::what_is_made_with_a_credential_while_it_is_removed_goes_with_it,
    accounts::what_expired_is_removed,
    artifacts::a_file_belongs_to_its_owner_and_is_read_piece_by_piece,
    artifacts::what_no_conversation_holds_and_what_was_never_finished_goes_when_it_is_old,
    artifacts::what_an_append_says_that_it_holds_goes_with_the_last_conversation_that_has_it,
    artifacts::a_file_that_is_uploaded_again_stays_where_the_conversation_that_held_it_goes,
    artifacts::what_is_begun_as_another_holds_its_files_or_is_not_stored,
    artifacts::a_piece_that_is_stored_again_is_stored_once,
    documents::documents_are_kept_over_a_restart,
    documents::the_first_of_many_who_add_a_document_is_first_in_a_store,
    documents::upper_documents_are_told_from_the_rest_in_a_store,
    documents::of_several_processes_that_add_a_document_at_once_one_is_first_for_all,
    documents::a_document_is_changed_by_whoever_saw_what_it_is,
    locks::one_at_a_time_holds_a_lock_whatever_store_it_asked,
    rates::what_may_happen_only_so_often_is_counted_over_all_stores_and_a_restart,
    knowledge::pieces_are_found_by_their_words_in_their_own_collections,
    knowledge::a_document_that_changes_is_found_as_it_is_now_and_one_that_is_gone_is_not,
    knowledge::a_large_document_is_found_whole_once_its_last_part_is_there,
    knowledge::only_one_of_two_processes_changes_a_collection,
    knowledge::vectors_find_what_points_the_same_way_and_are_of_one_model,
    knowledge::what_is_beside_a_conversation_goes_with_it,
    knowledge::what_begins_as_another_has_its_documents_and_keeps_them,
    search::what_people_and_models_said_is_found_by_its_owner_as_soon_as_it_is_stored,
    search::what_a_copy_begins_with_is_found_in_it_too,
    search::words_are_found_with_their_accents_and_without_them_in_any_script,
    search::scripts_without_spaces_are_found_by_any_part_and_nothing_that_is_typed_is_an_operator,
    search::what_is_hidden_or_deleted_is_not_found_also_where_another_takes_its_place,
    search::it_goes_on_where_it_was_and_several_may_take_in_at_once,
    upkeep::what_is_old_goes_unless_it_is_pinned_or_its_turn_is_open,
    upkeep::requests_that_came_before_a_time_are_forgotten_and_no_other_keys,
    upkeep::what_was_made_after_something_young_is_not_old_whatever_the_clock_said,
}
