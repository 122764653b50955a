//! Who has a turn when: shuffled by the seed, and balanced over positions.

use plimsoll_core::seed::Draw;

/// The order of a round, from 1. Over as many rounds as there are candidates each of them has
/// every position once.
pub(super) fn order_of_round(
    candidates: usize,
    seed: u64,
    step: &str,
    start: u32,
    round: u32,
) -> Vec<usize> {
    let group = (round - 1) as usize / candidates.max(1);
    let mut draw = Draw::new(
        seed,
        &["turns", step, &start.to_string(), &group.to_string()],
    );
    let mut order: Vec<usize> = (0..candidates).collect();
    draw.shuffle(&mut order);
    let mut rotations: Vec<usize> = (0..candidates).collect();
    draw.shuffle(&mut rotations);
    order.rotate_left(rotations[(round - 1) as usize % candidates]);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_has_every_position_equally_often() {
        let rounds: Vec<Vec<usize>> = (1..=20)
            .map(|round| order_of_round(5, 7, "point-query", 1, round))
            .collect();
        for group in rounds.chunks(5) {
            for candidate in 0..5 {
                let mut positions: Vec<usize> = group
                    .iter()
                    .map(|order| order.iter().position(|&at| at == candidate).unwrap())
                    .collect();
                positions.sort_unstable();
                assert_eq!(positions, [0, 1, 2, 3, 4]);
            }
        }
        let of = |seed, step, start| -> Vec<Vec<usize>> {
            (1..=20)
                .map(|round| order_of_round(5, seed, step, start, round))
                .collect()
        };
        assert_eq!(rounds, of(7, "point-query", 1));
        for other in [
            of(8, "point-query", 1),
            of(7, "insert", 1),
            of(7, "point-query", 2),
        ] {
            assert_ne!(rounds, other);
        }
        let firsts: std::collections::BTreeSet<&Vec<usize>> = rounds.iter().step_by(5).collect();
        assert!(firsts.len() > 1, "groups are shuffled again");
    }
}
