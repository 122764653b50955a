//! Five models of how the load's threads meet, each in 4,000 orders: `make models`.

use plimsoll_load_models::models;

#[test]
fn a_turn_holds_what_was_done_in_it_and_nothing_else() {
    models::a_turn_holds_what_was_done_in_it_and_nothing_else();
}

#[test]
fn a_stop_is_final_whoever_says_what_at_the_same_time() {
    models::a_stop_is_final_whoever_says_what_at_the_same_time();
}

#[test]
fn workers_that_end_by_their_rule_are_not_waited_for() {
    models::workers_that_end_by_their_rule_are_not_waited_for();
}

#[test]
fn a_director_that_waits_for_the_parked_hears_a_stop() {
    models::a_director_that_waits_for_the_parked_hears_a_stop();
}

#[test]
fn intervals_lose_nothing_and_come_in_the_order_of_time() {
    models::intervals_lose_nothing_and_come_in_the_order_of_time();
}
